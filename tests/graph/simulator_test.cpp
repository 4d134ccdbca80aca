#include "headrace/graph/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"
#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/stall.h"
#include "tests/graph/equal_blocks.h"

namespace headrace::graph {
namespace {

// Edges go from lower to higher index, so there is no cycle; costs are whole milliseconds, some of them 0.
TaskGraph random_graph(uint64_t seed) {
  Rng rng(seed);
  TaskGraph graph;
  for (size_t i = 0; i < kNumLaneKinds; ++i) graph.num_lanes[i] = 1;
  graph.set_lanes(LaneKind::kHostUpdate, static_cast<int32_t>(1 + rng.below(3)));
  const auto count = static_cast<int32_t>(2 + rng.below(60));
  for (int32_t i = 0; i < count; ++i) {
    graph.add({.kind = static_cast<TaskKind>(rng.below(kNumTaskKinds)),
               .lane = static_cast<LaneKind>(rng.below(kNumLaneKinds)),
               .block = i,
               .deadline = static_cast<int64_t>(rng.below(10)),
               .cost_s = 1e-3 * static_cast<double>(rng.below(5))});
    for (uint64_t edges = i > 0 ? rng.below(4) : 0; edges > 0; --edges) {
      graph.connect(static_cast<int32_t>(rng.below(static_cast<uint64_t>(i))), i);
    }
  }
  return graph;
}

// Longest chain of edges, computed without the simulator. Tasks are in topological order.
int64_t critical_path_ns(const TaskGraph& graph) {
  std::vector<int64_t> ends(graph.tasks.size(), 0);
  int64_t longest = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    for (const Edge& edge : graph.edges) {
      if (static_cast<size_t>(edge.to) == i) ends[i] = std::max(ends[i], ends[static_cast<size_t>(edge.from)]);
    }
    ends[i] += to_ns(graph.tasks[i].cost_s);
    longest = std::max(longest, ends[i]);
  }
  return longest;
}

void expect_sound(const TaskGraph& graph, const Timeline& timeline) {
  std::map<std::pair<LaneKind, int32_t>, std::vector<std::pair<int64_t, int64_t>>> by_lane;
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    const TaskRun& run = timeline.runs[i];
    EXPECT_GE(run.start_ns, 0);
    EXPECT_EQ(run.end_ns - run.start_ns, to_ns(graph.tasks[i].cost_s));
    EXPECT_LT(run.lane_index, graph.lanes_of(graph.tasks[i].lane));
    by_lane[{graph.tasks[i].lane, run.lane_index}].emplace_back(run.start_ns, run.end_ns);
  }
  for (auto& [lane, runs] : by_lane) {
    std::sort(runs.begin(), runs.end());
    for (size_t i = 1; i < runs.size(); ++i) EXPECT_GE(runs[i].first, runs[i - 1].second) << name_of(lane.first);
  }
  for (const Edge& edge : graph.edges) {
    EXPECT_GE(timeline.runs[static_cast<size_t>(edge.to)].start_ns,
              timeline.runs[static_cast<size_t>(edge.from)].end_ns);
  }
}

TEST(Simulator, RandomGraphsRunSoundlyAndTheSameTwice) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const TaskGraph graph = random_graph(seed);
    for (const Order order : {Order::kDeadline, Order::kArrival}) {
      const Timeline timeline = simulate(graph, {.order = order, .data_ready_s = {0.004}});
      expect_sound(graph, timeline);
      const Window whole = whole_run(timeline);
      EXPECT_GE(whole.end_ns, critical_path_ns(graph));
      for (size_t i = 0; i < kNumLaneKinds; ++i) {
        const auto lane = static_cast<LaneKind>(i);
        EXPECT_GE(whole.end_ns * graph.lanes_of(lane), busy_ns(graph, timeline, lane, whole));
      }
      const Timeline again = simulate(graph, {.order = order, .data_ready_s = {0.004}});
      for (size_t i = 0; i < graph.tasks.size(); ++i) {
        EXPECT_EQ(timeline.runs[i].start_ns, again.runs[i].start_ns);
        EXPECT_EQ(timeline.runs[i].lane_index, again.runs[i].lane_index);
      }
      const StallTable stall = attribute_stall(graph, timeline, whole);
      EXPECT_EQ(stall.idle_ns, whole.length_ns() - busy_ns(graph, timeline, LaneKind::kCompute, whole));
      for (const StallRow& row : stall.rows) EXPECT_NE(row.reason.wait, WaitFor::kHandoff);
    }
  }
}

// One host lane, blocks 0 to 2; the update of block 2 arrives first and runs, 1 and 0 arrive meanwhile.
TEST(Simulator, OrderDecidesAmongReadyUpdates) {
  TaskGraph graph;
  graph.set_lanes(LaneKind::kCompute, 1);
  graph.set_lanes(LaneKind::kHostUpdate, 1);
  std::vector<int32_t> updates(3);
  for (int32_t block = 2; block >= 0; --block) {
    const int32_t backward = graph.add({.kind = TaskKind::kBackward, .block = block, .cost_s = 1});
    updates[static_cast<size_t>(block)] = graph.add(
        {.kind = TaskKind::kHostUpdate, .lane = LaneKind::kHostUpdate, .block = block, .deadline = block, .cost_s = 3});
    graph.connect(backward, updates[static_cast<size_t>(block)]);
  }
  const auto start_of = [&](Order order, size_t block) {
    return to_seconds(
        simulate(graph, {.order = order, .data_ready_s = {}}).runs[static_cast<size_t>(updates[block])].start_ns);
  };
  EXPECT_EQ(start_of(Order::kDeadline, 2), 1);
  EXPECT_EQ(start_of(Order::kDeadline, 0), 4);
  EXPECT_EQ(start_of(Order::kDeadline, 1), 7);
  EXPECT_EQ(start_of(Order::kArrival, 1), 4);
  EXPECT_EQ(start_of(Order::kArrival, 0), 7);
}

TEST(Simulator, SeveralHostWorkersShareTheUpdates) {
  StepShape shape = equal_blocks(48, true);
  const StepCosts costs{1, 2, 6};
  std::vector<double> steps;
  for (const int32_t workers : {1, 2, 4}) {
    shape.host_workers = workers;
    TaskGraph graph = repeat_step(exact_overlap_step(shape), 6);
    assign_costs(graph, ideal_table(shape, costs));  // the same rate of all workers together
    steps.push_back(steady_step_s(graph, simulate(graph)));
  }
  EXPECT_NEAR(steps[1], steps[0], 0.4);
  EXPECT_NEAR(steps[2], steps[0], 0.8);
}

TEST(Simulator, RefusesWhatIsNotValid) {
  TaskGraph graph = repeat_step(exact_overlap_step(equal_blocks(2)), 2);
  graph.connect(1, 0);
  EXPECT_THROW(simulate(graph), InternalError);
}

TEST(Simulator, AnEmptyGraphTakesNoTime) { EXPECT_EQ(whole_run(simulate(TaskGraph{})).end_ns, 0); }

}  // namespace
}  // namespace headrace::graph
