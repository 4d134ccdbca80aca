// Whether a graph can be run at all. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "headrace/graph/task_graph.h"

namespace headrace::graph {

enum class FaultKind {
  kUnknownLane,     // no lane of that kind, or not one of the vocabulary's
  kTooManyLanes,    // several lanes of a kind of which there is one
  kUnknownTask,     // an edge to or from a task that does not exist
  kSelfEdge,        // a task that waits for itself
  kRepeatedTask,    // two tasks of the same kind, lane, block, micro-batch, piece and step
  kBadCost,         // negative, not finite, or beyond what can be timed
  kBackwardInTime,  // an edge from a later step to an earlier one
  kCycle            // tasks that wait for each other, program order of the compute lane included
};

struct Fault {
  FaultKind kind;
  std::string text;  // one sentence with the tasks' names
};

// Every fault; none when the graph can run to its end. A cycle is looked for only when all edges are sound.
std::vector<Fault> faults_of(const TaskGraph& graph);

// Throws InternalError with the first fault: graphs are built by us.
void require_valid(const TaskGraph& graph);

}  // namespace headrace::graph
