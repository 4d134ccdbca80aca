// The graph of one step and what of earlier steps it waits for: what makes overlap across steps exact is an edge,
// forward(block i, step t + 1) after host_update(block i, step t). Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "headrace/graph/task_graph.h"

namespace headrace::graph {

// A task of an earlier step, by name, because that step's graph may have another shape.
struct PreviousTask {
  TaskKind kind = TaskKind::kHostUpdate;
  int32_t block = kWholeModel;
  int32_t micro_batch = kWholeStep;
  int32_t piece = kWholeBlock;
  std::optional<LaneKind> lane = {};  // empty: whichever; of several the first in the order of LaneKind
  int64_t steps_back = 1;             // >= 1; 1: the step right before
};

struct CrossStepEdge {
  PreviousTask from;
  int32_t to = 0;  // index into graph.tasks
};

struct StepGraph {
  TaskGraph graph;  // all of one step
  std::vector<CrossStepEdge> from_previous;

  void wait_for_previous(const PreviousTask& from, int32_t to) { from_previous.push_back({from, to}); }
};

// Throws InternalError when an edge from an earlier step leads to no task of this one, or back by less than one step.
void require_joinable(const StepGraph& step);

// One graph of all `steps`, in their order, renumbered from `first_step`. Edges from steps before the first are
// dropped: nothing runs before it. Lanes are those of the steps together. Throws InternalError when a step is not
// joinable or waits for a task that the step it names does not have.
TaskGraph join_steps(std::span<const StepGraph> steps, int64_t first_step = 0);

// The same step `num_steps` times over.
TaskGraph repeat_step(const StepGraph& step, int64_t num_steps);

}  // namespace headrace::graph
