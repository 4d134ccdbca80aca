// Steps of random shape for the tests of the graph, no two alike, that wait for tasks of up to four steps before.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/graph/step_graph.h"

namespace headrace::graph {

inline constexpr int64_t kMostStepsBack = 4;

// Two tasks share a name but for their lane. Edges within a step lead from lower to higher index, so there is no cycle.
// Now and then a step has no compute task, or none at all.
class RandomSteps {
 public:
  explicit RandomSteps(uint64_t seed) : rng_(seed) {}

  StepGraph next() {
    StepGraph step;
    step.graph.num_lanes.fill(1);
    step.graph.set_lanes(LaneKind::kHostUpdate, 2);
    const auto count = static_cast<int32_t>(rng_.below(12));
    const LaneKind first_lane = rng_.below(5) > 0 ? LaneKind::kCompute : LaneKind::kNet;
    const std::array lanes = {first_lane, LaneKind::kH2d, LaneKind::kHostUpdate, LaneKind::kD2h, LaneKind::kFileRead};
    const size_t offset = rng_.below(lanes.size());
    for (int32_t i = 0; i < count; ++i) add_task(step, i, lanes[(offset + static_cast<size_t>(i)) % lanes.size()]);
    steps_.push_back(step.graph);
    return step;
  }

 private:
  void add_task(StepGraph& step, int32_t i, LaneKind lane) {
    Task task{.kind = TaskKind::kAdopt, .lane = lane, .block = i / 2};
    task.deadline = static_cast<int64_t>(rng_.below(6));
    task.due_steps = static_cast<int64_t>(rng_.below(3));
    step.graph.add(task);
    for (uint64_t edges = i > 0 ? rng_.below(3) : 0; edges > 0; --edges) {
      step.graph.connect(static_cast<int32_t>(rng_.below(static_cast<uint64_t>(i))), i);
    }
    for (uint64_t edges = rng_.below(3); edges > 0; --edges) wait_for_earlier(step, i);
  }

  // Before the first step any name will do.
  void wait_for_earlier(StepGraph& step, int32_t to) {
    const uint64_t back = 1 + rng_.below(kMostStepsBack);
    PreviousTask name{.kind = TaskKind::kFetch, .steps_back = static_cast<int64_t>(back)};
    if (back <= steps_.size()) {
      const std::vector<Task>& tasks = steps_[steps_.size() - back].tasks;
      if (tasks.empty()) return;
      const Task& from = tasks[rng_.below(tasks.size())];
      name.kind = from.kind;
      name.block = from.block;
      name.lane = from.lane;
    }
    step.wait_for_previous(name, to);
  }

  Rng rng_;
  std::vector<TaskGraph> steps_;  // made so far
};

}  // namespace headrace::graph
