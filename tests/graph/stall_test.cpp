#include "headrace/graph/stall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/no_overlap_step.h"
#include "headrace/graph/simulator.h"
#include "tests/graph/equal_blocks.h"

namespace headrace::graph {
namespace {

using testing::HasSubstr;

int64_t ns_of(const StallTable& table, const StallReason& reason) {
  for (const StallRow& row : table.rows) {
    if (row.reason == reason) return row.ns;
  }
  return 0;
}

CostTable table_with_links(const StepShape& shape) {
  CostTable table = ideal_table(shape, {1, 2, 4});
  table.of(LaneKind::kD2h).seconds_per_byte = 1e-4;
  table.of(LaneKind::kH2d).seconds_per_byte = 2e-4;
  return table;
}

TEST(Stall, WithoutOverlapEachPartIsWaitedForInFull) {
  const StepShape shape = equal_blocks(4);
  TaskGraph graph = repeat_step(no_overlap_step(shape), 4);
  assign_costs(graph, table_with_links(shape));
  const Timeline timeline = simulate(graph);
  const StallTable table = attribute_stall(graph, timeline, steady_window(graph, timeline));
  for (int32_t block = 0; block < 4; ++block) {  // two steps in the window
    EXPECT_EQ(ns_of(table, {.kind = TaskKind::kOffload, .block = block}), to_ns(2 * 0.1));
    EXPECT_EQ(ns_of(table, {.kind = TaskKind::kHostUpdate, .block = block}), to_ns(2 * 1.0));
    EXPECT_EQ(ns_of(table, {.kind = TaskKind::kFetch, .block = block}), to_ns(2 * 0.2));
  }
  EXPECT_EQ(table.rows.size(), 12u);
  EXPECT_EQ(table.idle_ns, to_ns(2 * (0.4 + 4 + 0.8)));
  EXPECT_NEAR(table.share(), 5.2 / 8.2, 1e-9);
  EXPECT_THAT(table.text(), HasSubstr("host_update        8.000000 s  48.78 %  most for block"));
  EXPECT_THAT(table.text(), HasSubstr("idle              10.400000 s  63.41 %"));
}

TEST(Stall, SumsToTheIdleTimeOfAnyWindow) {
  const StepShape shape = equal_blocks(7, true);
  TaskGraph graph = repeat_step(exact_overlap_step(shape, 2), 5);
  assign_costs(graph, table_with_links(shape));
  const Timeline timeline = simulate(graph);
  const int64_t end = whole_run(timeline).end_ns;
  for (int64_t begin = 0; begin < end; begin += end / 13) {
    for (const Window window : {Window{begin, end}, Window{begin, begin + (end - begin) / 3}}) {
      const StallTable table = attribute_stall(graph, timeline, window);
      EXPECT_EQ(table.idle_ns, window.length_ns() - busy_ns(graph, timeline, LaneKind::kCompute, window));
    }
  }
}

TEST(Stall, PiecesOfABlockCountTogether) {
  const StepShape shape = equal_blocks(4, true, 5);
  TaskGraph graph = repeat_step(exact_overlap_step(shape), 4);
  assign_costs(graph, table_with_links(shape));
  const Timeline timeline = simulate(graph);
  const StallTable table = attribute_stall(graph, timeline, steady_window(graph, timeline));
  EXPECT_LE(table.rows.size(), 12u);  // three kinds of four blocks
  EXPECT_GT(ns_of(table, {.kind = TaskKind::kHostUpdate, .block = 0}), 0);
}

TEST(Stall, DataThatComesLateIsAReason) {
  const StepShape shape = equal_blocks(2);
  TaskGraph graph = repeat_step(exact_overlap_step(shape), 2);
  assign_costs(graph, ideal_table(shape, {1, 1, 0}));
  const Timeline timeline = simulate(graph, {.order = Order::kDeadline, .data_ready_s = {0.25, 5}});
  const StallTable table = attribute_stall(graph, timeline, whole_run(timeline));
  EXPECT_EQ(table.idle_ns, to_ns(0.25 + 2.75));
  EXPECT_EQ(ns_of(table, {.wait = WaitFor::kData}), table.idle_ns);
  EXPECT_THAT(table.text(), HasSubstr("data "));
}

// As an executor measures it: nothing of a step starts before the trainer hands it over, 20 ns after the last one
// ended.
TEST(Stall, AStepThatBeginsWithAMergeWaitsForDataToo) {
  TaskGraph graph;
  graph.set_lanes(LaneKind::kCompute, 1);
  graph.add({.kind = TaskKind::kForward, .block = 0});
  graph.add({.kind = TaskKind::kMerge, .block = 0, .step = 1});
  graph.add({.kind = TaskKind::kForward, .block = 0, .step = 1});
  const Timeline timeline{.runs = {{0, 10}, {32, 40}, {40, 50}}, .data_ready_ns = {0, 30}};
  const StallTable table = attribute_stall(graph, timeline, whole_run(timeline));
  EXPECT_EQ(ns_of(table, {.wait = WaitFor::kData}), 20);
  EXPECT_EQ(ns_of(table, {.wait = WaitFor::kHandoff}), 2);
  EXPECT_EQ(table.idle_ns, 22);
}

// As an executor would measure it: the second task starts 5 ns after nothing keeps it.
TEST(Stall, AGapWithoutACauseIsHandoff) {
  TaskGraph graph;
  graph.set_lanes(LaneKind::kCompute, 1);
  graph.add({.kind = TaskKind::kForward, .block = 0});
  graph.add({.kind = TaskKind::kForward, .block = 1});
  graph.connect(0, 1);
  const Timeline timeline{.runs = {{0, 10}, {15, 20}}, .data_ready_ns = {}};
  const StallTable table = attribute_stall(graph, timeline, whole_run(timeline));
  EXPECT_EQ(ns_of(table, {.wait = WaitFor::kHandoff}), 5);
  EXPECT_EQ(table.idle_ns, 5);
}

TEST(Stall, ReasonsHaveNames) {
  EXPECT_EQ(name_of(StallReason{.kind = TaskKind::kHostUpdate, .block = 3}), "host_update of block 3");
  EXPECT_EQ(name_of(StallReason{.wait = WaitFor::kData}), "data");
}

}  // namespace
}  // namespace headrace::graph
