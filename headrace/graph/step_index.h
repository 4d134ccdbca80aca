// Finds the tasks of a step by name, for the steps after it. Pure; reading is safe from any thread.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "headrace/graph/step_graph.h"

namespace headrace::graph {

class StepIndex {
 public:
  StepIndex() = default;
  // Refers to nothing of the graph afterwards.
  explicit StepIndex(const TaskGraph& graph);

  // Index of the task of this name in the graph. Throws InternalError naming `waiting`, a task of the step that many
  // steps later, when there is none.
  int32_t find(const PreviousTask& name, const Task& waiting) const;

 private:
  using Key = std::tuple<TaskKind, int32_t, int32_t, int32_t, LaneKind>;
  std::vector<std::pair<Key, int32_t>> entries_;  // sorted
};

}  // namespace headrace::graph
