#include "headrace/graph/step_graph.h"

#include <algorithm>
#include <utility>

#include "headrace/graph/step_index.h"

namespace headrace::graph {
namespace {

class Joiner {
 public:
  // Appends one step and connects it with the step appended before.
  void append(const StepGraph& step, int64_t number) {
    const auto offset = static_cast<int32_t>(joined_.tasks.size());
    for (Task task : step.graph.tasks) {
      task.step = number;
      joined_.add(task);
    }
    for (const Edge& edge : step.graph.edges) joined_.connect(edge.from + offset, edge.to + offset);
    if (offset > 0) {
      for (const CrossStepEdge& edge : step.from_previous) {
        const int32_t to = edge.to + offset;
        joined_.connect(previous_offset_ + previous_.find(edge.from, joined_.tasks[static_cast<size_t>(to)]), to);
      }
    }
    for (size_t i = 0; i < kNumLaneKinds; ++i) {
      joined_.num_lanes[i] = std::max(joined_.num_lanes[i], step.graph.num_lanes[i]);
    }
    previous_ = StepIndex(step.graph);
    previous_offset_ = offset;
  }

  TaskGraph take() { return std::move(joined_); }

 private:
  TaskGraph joined_;
  StepIndex previous_;
  int32_t previous_offset_ = 0;
};

}  // namespace

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
