// A run as Chrome's trace event format, which Perfetto and chrome://tracing open: one track a lane, one slice a task,
// in the graph's own terms, whether simulated or measured. Format: "Trace Event Format" (Google): complete events "X",
// metadata "M", times in microseconds.
#pragma once

#include <ostream>
#include <string>

#include "headrace/graph/task_graph.h"
#include "headrace/graph/timeline.h"

namespace headrace::graph {

// One JSON object {"traceEvents": [...], "displayTimeUnit": "ms"}, an event a line. `title` names the process, for
// example "offload (emulated)". Tracks stand in the order of LaneKind. Writes to `out` only, whose state tells of
// failure.
void write_chrome_trace(std::ostream& out, const TaskGraph& graph, const Timeline& timeline, const std::string& title);

}  // namespace headrace::graph
