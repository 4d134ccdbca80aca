#include "headrace/graph/step_graph.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/graph/step_index.h"

namespace headrace::graph {
namespace {

constexpr std::string_view kPlace = "graph.join";

class Joiner {
 public:
  // Appends one step and connects it with those appended before.
  void append(const StepGraph& step, int64_t number) {
    require_joinable(step);
    const auto offset = static_cast<int32_t>(joined_.tasks.size());
    for (Task task : step.graph.tasks) {
      task.step = number;
      joined_.add(task);
    }
    for (const Edge& edge : step.graph.edges) joined_.connect(edge.from + offset, edge.to + offset);
    for (const CrossStepEdge& edge : step.from_previous) connect_back(edge, edge.to + offset);
    for (size_t i = 0; i < kNumLaneKinds; ++i) {
      joined_.num_lanes[i] = std::max(joined_.num_lanes[i], step.graph.num_lanes[i]);
    }
    appended_.push_back({offset, StepIndex(step.graph)});
  }

  TaskGraph take() { return std::move(joined_); }

 private:
  struct Appended {
    int32_t offset;  // of its first task in the joined graph
    StepIndex names;
  };

  void connect_back(const CrossStepEdge& edge, int32_t to) {
    const auto back = static_cast<size_t>(edge.from.steps_back);
    if (back > appended_.size()) return;
    const Appended& earlier = appended_[appended_.size() - back];
    joined_.connect(earlier.offset + earlier.names.find(edge.from, joined_.tasks[static_cast<size_t>(to)]), to);
  }

  TaskGraph joined_;
  std::vector<Appended> appended_;
};

}  // namespace

void require_joinable(const StepGraph& step) {
  for (const CrossStepEdge& edge : step.from_previous) {
    if (edge.to < 0 || static_cast<size_t>(edge.to) >= step.graph.tasks.size()) {
      throw InternalError(kPlace, "an edge from an earlier step to task " + std::to_string(edge.to) + ", of " +
                                      std::to_string(step.graph.tasks.size()) + ".");
    }
    if (edge.from.steps_back < 1) {
      throw InternalError(kPlace, name_of(step.graph.tasks[static_cast<size_t>(edge.to)]) + " waits for " +
                                      std::string(name_of(edge.from.kind)) + " of " +
                                      std::to_string(edge.from.steps_back) + " steps back, at least 1 is needed.");
    }
  }
}

TaskGraph join_steps(std::span<const StepGraph> steps, int64_t first_step) {
  Joiner joiner;
  for (size_t i = 0; i < steps.size(); ++i) joiner.append(steps[i], first_step + static_cast<int64_t>(i));
  return joiner.take();
}

TaskGraph repeat_step(const StepGraph& step, int64_t num_steps) {
  Joiner joiner;
  for (int64_t i = 0; i < num_steps; ++i) joiner.append(step, i);
  return joiner.take();
}

}  // namespace headrace::graph
