#include "headrace/graph/step_graph.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "headrace/base/errors.h"

namespace headrace::graph {
namespace {

// Where the tasks of a step lie in the joined graph.
using Index = std::map<std::tuple<TaskKind, int32_t, int32_t>, int32_t>;

int32_t find(const Index& index, const CrossStepEdge& edge, const Task& waiting) {
  const PreviousTask& from = edge.from;
  const auto found = index.find({from.kind, from.block, from.micro_batch});
  if (found != index.end()) return found->second;
  const Task missing{.kind = from.kind, .block = from.block, .micro_batch = from.micro_batch, .step = waiting.step - 1};
  throw InternalError("graph.join", name_of(waiting) + " waits for " + name_of(missing) + ", which does not exist.");
}

class Joiner {
 public:
  // Appends one step and connects it with the step appended before.
  void append(const StepGraph& step, int64_t number) {
    const auto offset = static_cast<int32_t>(joined_.tasks.size());
    Index index;
    for (Task task : step.graph.tasks) {
      task.step = number;
      index[{task.kind, task.block, task.micro_batch}] = joined_.add(task);
    }
    for (const Edge& edge : step.graph.edges) joined_.connect(edge.from + offset, edge.to + offset);
    if (offset > 0) {
      for (const CrossStepEdge& edge : step.from_previous) {
        const int32_t to = edge.to + offset;
        joined_.connect(find(previous_, edge, joined_.tasks[static_cast<size_t>(to)]), to);
      }
    }
    for (size_t i = 0; i < kNumLaneKinds; ++i) {
      joined_.num_lanes[i] = std::max(joined_.num_lanes[i], step.graph.num_lanes[i]);
    }
    previous_ = std::move(index);
  }

  TaskGraph take() { return std::move(joined_); }

 private:
  TaskGraph joined_;
  Index previous_;
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
