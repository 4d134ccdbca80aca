// What the compute lane waited for. Every idle moment has one reason, found by walking back from the task that ended
// the wait: it waited for the last of its predecessors, that one for its own or for its lane, and so on, as far back as
// the wait reaches. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/graph/task_graph.h"
#include "headrace/graph/timeline.h"

namespace headrace::graph {

enum class WaitFor {
  kTask,    // a task that was running on another lane
  kData,    // the step's data
  kHandoff  // nothing ran and nothing was missing: a real run's time between a task's end and the next one's start
};

struct StallReason {
  WaitFor wait = WaitFor::kTask;
  TaskKind kind = TaskKind::kFetch;  // of the task, with kTask
  int32_t block = kWholeModel;       // likewise; its pieces count together
  auto operator<=>(const StallReason&) const = default;
};

// "host_update of block 3", "data", "handoff".
std::string name_of(const StallReason& reason);

struct StallRow {
  StallReason reason;
  int64_t ns = 0;
};

struct StallTable {
  Window window;
  int64_t idle_ns = 0;         // of the compute lane within the window: the sum of all rows
  std::vector<StallRow> rows;  // longest first

  double share() const;  // idle time over the window's length [0..1]
  // A table for people: a line a kind of task, with seconds, share of the window and the worst block.
  std::string text() const;
};

// The graph is valid, the timeline complete. After the last compute task the lane waits for the run's last task.
StallTable attribute_stall(const TaskGraph& graph, const Timeline& timeline, const Window& window);

}  // namespace headrace::graph
