#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "headrace/base/errors.h"
#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/no_overlap_step.h"
#include "headrace/graph/resident_step.h"
#include "tests/graph/equal_blocks.h"
#include "tests/graph/folded_model.h"

namespace headrace::graph {
namespace {

int64_t bytes_on(const TaskGraph& graph, LaneKind lane) {
  int64_t bytes = 0;
  for (const Task& task : graph.tasks) bytes += task.lane == lane ? task.bytes : 0;
  return bytes;
}

int32_t index_of(const TaskGraph& graph, TaskKind kind, int32_t block, int64_t step, int32_t micro = kWholeStep,
                 int32_t piece = kWholeBlock) {
  const auto found = std::find_if(graph.tasks.begin(), graph.tasks.end(), [&](const Task& task) {
    return task.kind == kind && task.block == block && task.step == step && task.micro_batch == micro &&
           task.piece == piece;
  });
  return found == graph.tasks.end() ? -1 : static_cast<int32_t>(found - graph.tasks.begin());
}

bool has_edge(const TaskGraph& graph, int32_t from, int32_t to) {
  return from >= 0 && to >= 0 && std::find(graph.edges.begin(), graph.edges.end(), Edge{from, to}) != graph.edges.end();
}

TEST(Steps, AGradientCrossesTheLinkOnceAStepHoweverManyMicroBatches) {
  for (const int32_t accumulate : {1, 4}) {
    for (const auto order : {ComputeOrder::kMicroBatchMajor, ComputeOrder::kLayerMajor}) {
      StepShape shape = equal_blocks(6, true);
      shape.accumulate = accumulate;
      shape.order = order;
      for (const StepGraph& step : {exact_overlap_step(shape), no_overlap_step(shape)}) {
        EXPECT_EQ(bytes_on(step.graph, LaneKind::kD2h), 6000);
        EXPECT_EQ(bytes_on(step.graph, LaneKind::kH2d), 6000);
      }
      EXPECT_EQ(bytes_on(exact_overlap_step(shape, 2).graph, LaneKind::kD2h), 4000);
      EXPECT_EQ(bytes_on(resident_step(shape).graph, LaneKind::kD2h), 0);
    }
  }
}

// "f01" is forward of block 0 with micro-batch 1.
std::string compute_order(const StepShape& shape) {
  std::string order;
  for (const Task& task : resident_step(shape).graph.tasks) {
    if (task.micro_batch == kWholeStep) continue;
    order += task.kind == TaskKind::kForward ? "f" : task.kind == TaskKind::kBackward ? "b" : "r";
    order += std::to_string(task.block) + std::to_string(task.micro_batch);
  }
  return order;
}

TEST(Steps, LayerMajorTakesABlockThroughAllMicroBatchesFirst) {
  StepShape shape = equal_blocks(2);
  shape.accumulate = 2;
  shape.order = ComputeOrder::kLayerMajor;
  EXPECT_EQ(compute_order(shape), "f00f01f10f11b10b11b00b01");
}

TEST(Steps, MicroBatchMajorTakesTheFirstBlockBackwardLast) {
  StepShape shape = equal_blocks(3);
  shape.accumulate = 2;
  EXPECT_EQ(compute_order(shape), "f00f10f20b20b10f01f11f21b21b11b00b01");
  shape.recompute = true;
  EXPECT_EQ(compute_order(shape), "f00f10f20r20b20r10b10f01f11f21r21b21r11b11r00b00r01b01");
  shape.accumulate = 1;
  EXPECT_EQ(compute_order(shape), "f00f10f20r20b20r10b10r00b00");
  shape = equal_blocks(1);
  shape.accumulate = 2;
  EXPECT_EQ(compute_order(shape), "f00b00f01b01");
}

// What is added to a tied embedding's gradient, by the head and then by its own backward, comes in the same order.
TEST(Steps, BothComputeOrdersGiveTheSameResult) {
  for (const bool is_tied : {false, true}) {
    for (const int32_t blocks : {2, 5}) {
      StepShape shape = equal_blocks(blocks, true);
      shape.is_tied = is_tied;
      shape.accumulate = 4;
      const std::vector<uint64_t> expected = resident_state(shape, 3);
      shape.order = ComputeOrder::kLayerMajor;
      EXPECT_EQ(resident_state(shape, 3), expected);
      shape.clip = false;
      EXPECT_NE(resident_state(shape, 3), expected);
    }
  }
}

TEST(Steps, TheNextForwardWaitsForItsOwnBlockOnly) {
  const TaskGraph graph = repeat_step(exact_overlap_step(equal_blocks(3)), 2);
  for (int32_t block = 0; block < 3; ++block) {
    const int32_t update = index_of(graph, TaskKind::kHostUpdate, block, 0);
    const int32_t fetch = index_of(graph, TaskKind::kFetch, block, 0);
    EXPECT_TRUE(has_edge(graph, index_of(graph, TaskKind::kBackward, block, 0, 0),
                         index_of(graph, TaskKind::kOffload, block, 0)));
    EXPECT_TRUE(has_edge(graph, update, fetch));
    for (int32_t other = 0; other < 3; ++other) {
      EXPECT_EQ(has_edge(graph, fetch, index_of(graph, TaskKind::kForward, other, 1, 0)), other == block);
    }
  }
}

TEST(Steps, ClippingHoldsEveryUpdateUntilTheNorm) {
  const TaskGraph graph = repeat_step(exact_overlap_step(equal_blocks(4, true), 2), 1);
  const int32_t norm = index_of(graph, TaskKind::kReduce, kWholeModel, 0);
  for (int32_t block = 0; block < 4; ++block) {
    EXPECT_TRUE(has_edge(graph, index_of(graph, TaskKind::kBackward, block, 0, 0), norm));
    const TaskKind update = block < 2 ? TaskKind::kDeviceUpdate : TaskKind::kHostUpdate;
    EXPECT_TRUE(has_edge(graph, norm, index_of(graph, update, block, 0)));
  }
}

TEST(Steps, RecomputeComesBeforeItsBackward) {
  StepShape shape = equal_blocks(3);
  shape.recompute = true;
  const TaskGraph graph = resident_step(shape).graph;
  for (int32_t block = 0; block < 3; ++block) {
    EXPECT_TRUE(has_edge(graph, index_of(graph, TaskKind::kRecompute, block, 0, 0),
                         index_of(graph, TaskKind::kBackward, block, 0, 0)));
  }
}

TEST(Steps, JoinedStepsMayDifferInShapeButMustHaveWhatTheNextWaitsFor) {
  const StepShape shape = equal_blocks(3, true);
  const std::array<StepGraph, 2> same = {exact_overlap_step(shape, 1), exact_overlap_step(shape, 1)};
  const TaskGraph graph = join_steps(same, 40);
  EXPECT_EQ(graph.tasks.front().step, 40);
  EXPECT_EQ(graph.tasks.back().step, 41);
  const std::array<StepGraph, 2> different = {resident_step(shape), exact_overlap_step(shape)};
  EXPECT_THROW(join_steps(different), InternalError);
}

TEST(Steps, ShapesThatMakeNoStepAreRefused) {
  EXPECT_THROW(resident_step({}), InternalError);
  EXPECT_THROW(exact_overlap_step(equal_blocks(2), 3), InternalError);
  EXPECT_THROW(exact_overlap_step(equal_blocks(2), -1), InternalError);
  EXPECT_THROW(exact_overlap_step(equal_blocks(2, false, 0)), InternalError);
  StepShape shape = equal_blocks(2);
  shape.needed_share = 0.5;  // of a block in one piece
  EXPECT_THROW(exact_overlap_step(shape), InternalError);
  shape = equal_blocks(2, false, 2);
  shape.needed_share = 1;
  EXPECT_THROW(exact_overlap_step(shape), InternalError);
  shape = equal_blocks(2);
  shape.gradient_slots = -1;
  EXPECT_THROW(exact_overlap_step(shape), InternalError);
  shape.gradient_slots = 1;
  shape.accumulate = 2;
  EXPECT_THROW(exact_overlap_step(shape), InternalError);
  shape.order = ComputeOrder::kLayerMajor;
  exact_overlap_step(shape);
}

}  // namespace
}  // namespace headrace::graph
