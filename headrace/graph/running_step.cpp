#include "headrace/graph/running_step.h"

namespace headrace::graph {

RunningStep::RunningStep(const StepGraph& what, int64_t step_number, int64_t first, int64_t called)
    : step(what),
      first_number(first),
      called_ns(called),
      names(what.graph),
      successors(successors_of(what.graph)),
      later_successors(what.graph.tasks.size()),
      num_missing(what.graph.tasks.size(), 0),
      task_has_ended(what.graph.tasks.size(), false),
      runs(what.graph.tasks.size()),
      num_left(static_cast<int64_t>(what.graph.tasks.size())) {
  for (Task& task : step.graph.tasks) task.step = step_number;
  for (const Edge& edge : step.graph.edges) ++num_missing[static_cast<size_t>(edge.to)];
}

void RunningStep::wait_for(const std::deque<std::unique_ptr<RunningStep>>& earlier) {
  struct Found {
    RunningStep* step;
    int32_t from, to;
  };
  std::vector<Found> found;
  for (const CrossStepEdge& edge : step.from_previous) {
    const auto back = static_cast<size_t>(edge.from.steps_back);
    if (back > earlier.size()) continue;
    RunningStep& from = *earlier[earlier.size() - back];
    found.push_back({&from, from.names.find(edge.from, task_at(edge.to)), edge.to});
  }
  for (const Found& edge : found) {
    const auto from = static_cast<size_t>(edge.from);
    if (edge.step->task_has_ended[from]) continue;
    edge.step->later_successors[from].push_back(first_number + edge.to);
    ++num_missing[static_cast<size_t>(edge.to)];
  }
}

}  // namespace headrace::graph
