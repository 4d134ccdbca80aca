// Runs a graph in virtual time: what an ideal executor would do, with no cost but the tasks' own. Deterministic: the
// same graph gives the same timeline everywhere. Pure; any thread.
#pragma once

#include <vector>

#include "headrace/graph/ready_queue.h"
#include "headrace/graph/task_graph.h"
#include "headrace/graph/timeline.h"

namespace headrace::graph {

struct SimulationSettings {
  Order order = Order::kDeadline;
  std::vector<double> data_ready_s;  // [s from the start] by step: before it the step's first forward cannot start
};

// A lane takes its next task as soon as it is free and one is ready; tasks that cost nothing pass first, so that ideal
// links stand in nobody's way. Throws InternalError when the graph is not valid. Time n log n in tasks and edges.
Timeline simulate(const TaskGraph& graph, const SimulationSettings& settings = {});

}  // namespace headrace::graph
