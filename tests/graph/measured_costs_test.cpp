#include "headrace/graph/measured_costs.h"

#include <gtest/gtest.h>

#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/simulator.h"
#include "tests/graph/equal_blocks.h"

namespace headrace::graph {
namespace {

// Blocks of different sizes, every lane with a rate and a time per task.
CostTable uneven_table(const StepShape& shape) {
  CostTable table;
  table.reduce_s = 0.003;
  table.of(LaneKind::kH2d) = {1e-5, 2e-3};
  table.of(LaneKind::kD2h) = {2e-5, 1e-3};
  table.of(LaneKind::kHostUpdate) = {5e-5, 4e-3};
  for (int32_t i = 0; i < shape.num_blocks(); ++i) {
    table.blocks.push_back({.forward_s = 0.01 + 0.001 * i,
                            .recompute_s = 0.005,
                            .backward_s = 0.03 - 0.001 * i,
                            .device_update_s = i < 2 ? 0.002 : 0});
  }
  return table;
}

StepShape uneven_shape() {
  StepShape shape = equal_blocks(6, /*clip=*/true, /*num_pieces=*/2);
  shape.recompute = true;
  shape.accumulate = 2;
  for (int32_t i = 0; i < shape.num_blocks(); ++i) {
    BlockShape& block = shape.blocks[static_cast<size_t>(i)];
    block.weight_bytes = block.gradient_bytes = block.update_bytes = 1000 + 400 * i;
  }
  return shape;
}

void expect_near(const CostTable& measured, const CostTable& expected) {
  const double tolerance = 2e-9;  // [s] times are whole nanoseconds
  EXPECT_NEAR(measured.reduce_s, expected.reduce_s, tolerance);
  ASSERT_EQ(measured.blocks.size(), expected.blocks.size());
  for (size_t i = 0; i < expected.blocks.size(); ++i) {
    EXPECT_NEAR(measured.blocks[i].forward_s, expected.blocks[i].forward_s, tolerance);
    EXPECT_NEAR(measured.blocks[i].recompute_s, expected.blocks[i].recompute_s, tolerance);
    EXPECT_NEAR(measured.blocks[i].backward_s, expected.blocks[i].backward_s, tolerance);
    EXPECT_NEAR(measured.blocks[i].device_update_s, expected.blocks[i].device_update_s, tolerance);
  }
  for (const LaneKind lane : {LaneKind::kH2d, LaneKind::kD2h, LaneKind::kHostUpdate}) {
    EXPECT_NEAR(measured.of(lane).seconds_per_byte, expected.of(lane).seconds_per_byte, tolerance / 100);
    EXPECT_NEAR(measured.of(lane).seconds_per_task, expected.of(lane).seconds_per_task, tolerance);
  }
}

TEST(MeasuredCosts, OfASimulatedRunAreTheTableItWasRunWith) {
  const StepShape shape = uneven_shape();
  const CostTable table = uneven_table(shape);
  TaskGraph graph = repeat_step(exact_overlap_step(shape, 2), 4);
  assign_costs(graph, table);
  const Timeline timeline = simulate(graph);
  const CostTable measured = measured_costs(graph, timeline, whole_run(timeline));
  EXPECT_EQ(measured.source, CostSource::kMeasured);
  expect_near(measured, table);
  expect_near(measured_costs(graph, timeline, steady_window(graph, timeline)), table);
}

// One task a second of these bytes and seconds on h2d, beside one forward.
LaneCost fitted(const std::vector<std::pair<int64_t, double>>& tasks) {
  TaskGraph graph;
  Timeline timeline;
  for (size_t i = 0; i < tasks.size(); ++i) {
    graph.add({.kind = TaskKind::kFetch, .lane = LaneKind::kH2d, .block = 0, .bytes = tasks[i].first});
    const int64_t start = to_ns(static_cast<double>(i));
    timeline.runs.push_back({.start_ns = start, .end_ns = start + to_ns(tasks[i].second)});
  }
  return measured_costs(graph, timeline, whole_run(timeline)).of(LaneKind::kH2d);
}

void expect_cost(const LaneCost& cost, double seconds_per_byte, double seconds_per_task) {
  EXPECT_NEAR(cost.seconds_per_byte, seconds_per_byte, 1e-12);
  EXPECT_NEAR(cost.seconds_per_task, seconds_per_task, 1e-12);
}

TEST(MeasuredCosts, ALineIsNeverNegativeAndKeepsTheSum) {
  expect_cost(fitted({}), 0, 0);
  expect_cost(fitted({{100, 0.1}, {100, 0.3}}), 0.002, 0);                // one size
  expect_cost(fitted({{100, 0.1}, {200, 0.4}}), 0.5 / 300, 0);            // through less than nothing at 0 bytes
  expect_cost(fitted({{100, 0.4}, {200, 0.2}}), 0, 0.3);                  // larger ones are faster
  expect_cost(fitted({{0, 0.1}, {0, 0.2}}), 0, 0.15);                     // no bytes at all
  expect_cost(fitted({{100, 0.2}, {200, 0.3}, {300, 0.4}}), 0.001, 0.1);  // a line
}

TEST(MeasuredCosts, OnlyTasksThatEndWithinTheWindowCount) {
  TaskGraph graph;
  Timeline timeline;
  for (int64_t step = 0; step < 3; ++step) {
    graph.add({.kind = TaskKind::kForward, .lane = LaneKind::kCompute, .block = 1, .step = step});
    timeline.runs.push_back({.start_ns = step * 1000, .end_ns = step * 1000 + 100 * (step + 1)});
  }
  const CostTable measured = measured_costs(graph, timeline, {.begin_ns = 100, .end_ns = 1200});
  ASSERT_EQ(measured.blocks.size(), 2U);
  EXPECT_DOUBLE_EQ(measured.blocks[1].forward_s, 200e-9);
  EXPECT_EQ(measured.blocks[0].forward_s, 0);
}

// Of work on the compute lane that is done for a block by pieces; whole-model reduces stand apart.
TEST(MeasuredCosts, PiecesCountTogether) {
  CostTable table;
  table.reduce_s = 0.5;
  table.blocks = {{}, {.split_s = 6, .merge_s = 4, .release_s = 3, .adopt_s = 2}};
  TaskGraph graph;
  graph.set_lanes(LaneKind::kCompute, 1);
  for (int64_t step = 0; step < 3; ++step) {
    for (const TaskKind kind : {TaskKind::kReduce, TaskKind::kMerge, TaskKind::kRelease, TaskKind::kAdopt}) {
      for (int32_t piece = 0; piece < 4; ++piece) {
        graph.add({.kind = kind, .block = 1, .piece = piece, .step = step});
      }
    }
    graph.add({.kind = TaskKind::kReduce, .step = step});
  }
  assign_costs(graph, table);
  const Timeline timeline = simulate(graph);
  for (const Window& window : {whole_run(timeline), Window{to_ns(1.6), to_ns(20)}}) {  // the other cuts through pieces
    const CostTable measured = measured_costs(graph, timeline, window);
    EXPECT_NEAR(measured.reduce_s, table.reduce_s, 1e-9);
    EXPECT_NEAR(measured.blocks[1].split_s, table.blocks[1].split_s, 1e-9);
    EXPECT_NEAR(measured.blocks[1].merge_s, table.blocks[1].merge_s, 1e-9);
    EXPECT_NEAR(measured.blocks[1].release_s, table.blocks[1].release_s, 1e-9);
    EXPECT_NEAR(measured.blocks[1].adopt_s, table.blocks[1].adopt_s, 1e-9);
  }
}

}  // namespace
}  // namespace headrace::graph
