#include "headrace/graph/step_index.h"

#include <algorithm>

#include "headrace/base/errors.h"

namespace headrace::graph {

StepIndex::StepIndex(const TaskGraph& graph) {
  entries_.reserve(graph.tasks.size());
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    entries_.emplace_back(Key{task.kind, task.block, task.micro_batch, task.piece}, static_cast<int32_t>(i));
  }
  std::sort(entries_.begin(), entries_.end());
}

int32_t StepIndex::find(const PreviousTask& name, const Task& waiting) const {
  const Key key{name.kind, name.block, name.micro_batch, name.piece};
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), std::pair(key, int32_t{0}));
  if (found != entries_.end() && found->first == key) return found->second;
  const Task missing{.kind = name.kind,
                     .block = name.block,
                     .micro_batch = name.micro_batch,
                     .piece = name.piece,
                     .step = waiting.step - 1};
  throw InternalError("graph.join", name_of(waiting) + " waits for " + name_of(missing) + ", which does not exist.");
}

}  // namespace headrace::graph
