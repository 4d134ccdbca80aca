// A cost table from a run: what its tasks really took, so that the simulator can say what the next run will take.
// Pure; any thread.
#pragma once

#include "headrace/graph/cost_table.h"
#include "headrace/graph/task_graph.h"
#include "headrace/graph/timeline.h"

namespace headrace::graph {

// From the tasks that ended within the window: on the compute lane the mean by kind and block, pieces together, on
// every other lane the line over bytes that fits its tasks best (least squares, neither coefficient negative), so that
// a lane's costs sum to the time measured. Tasks of one size alone say nothing about a cost per task: it is 0 then.
// Blocks and lanes without a task cost nothing. The graph is valid, the timeline complete.
CostTable measured_costs(const TaskGraph& graph, const Timeline& timeline, const Window& window);

}  // namespace headrace::graph
