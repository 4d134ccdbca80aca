// The graph of one step and what of the step before it waits for: what makes overlap across steps exact is an edge,
// forward(block i, step t + 1) after host_update(block i, step t). Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "headrace/graph/task_graph.h"

namespace headrace::graph {

// A task of the step before, by name, because that step's graph may have another shape.
struct PreviousTask {
  TaskKind kind = TaskKind::kHostUpdate;
  int32_t block = kWholeModel;
  int32_t micro_batch = kWholeStep;
  int32_t piece = kWholeBlock;
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

// One graph of all `steps`, in their order, renumbered from `first_step`. Cross-step edges of the first are dropped:
// nothing runs before it. Lanes are those of the steps together. Throws InternalError when a step waits for a task
// that the step before does not have.
TaskGraph join_steps(std::span<const StepGraph> steps, int64_t first_step = 0);

// The same step `num_steps` times over.
TaskGraph repeat_step(const StepGraph& step, int64_t num_steps);

}  // namespace headrace::graph
