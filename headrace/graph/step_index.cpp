#include "headrace/graph/step_index.h"

#include <algorithm>

#include "headrace/base/errors.h"

namespace headrace::graph {

StepIndex::StepIndex(const TaskGraph& graph) {
  entries_.reserve(graph.tasks.size());
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    entries_.emplace_back(Key{task.kind, task.block, task.micro_batch, task.piece, task.lane}, static_cast<int32_t>(i));
  }
  std::sort(entries_.begin(), entries_.end());
}

int32_t StepIndex::find(const PreviousTask& name, const Task& waiting) const {
  const Key first{name.kind, name.block, name.micro_batch, name.piece, name.lane.value_or(LaneKind{})};
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), std::pair(first, int32_t{0}));
  if (found != entries_.end()) {
    Key wanted = first;
    if (!name.lane) std::get<LaneKind>(wanted) = std::get<LaneKind>(found->first);
    if (found->first == wanted) return found->second;
  }
  Task missing{.kind = name.kind, .block = name.block, .micro_batch = name.micro_batch, .piece = name.piece};
  missing.lane = name.lane.value_or(missing.lane);
  missing.step = waiting.step - name.steps_back;
  throw InternalError("graph.join", name_of(waiting) + " waits for " + name_of(missing) + ", which does not exist.");
}

}  // namespace headrace::graph
