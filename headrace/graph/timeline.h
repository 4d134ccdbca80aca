// When each task of a graph ran, in virtual or in real time. Nanoseconds from the run's start, as integers: sums are
// exact and equal times are equal. Plain data and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/graph/task_graph.h"

namespace headrace::graph {

struct TaskRun {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int32_t lane_index = 0;  // which lane of the task's kind
};

struct Timeline {
  std::vector<TaskRun> runs;           // by task index
  std::vector<int64_t> data_ready_ns;  // by step from the graph's first: when its data had come; absent: at once
};

struct Window {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t length_ns() const { return end_ns - begin_ns; }
};

// [ns] of seconds, rounded to the nearest.
int64_t to_ns(double seconds);
double to_seconds(int64_t ns);

// From 0 to the end of the last task.
Window whole_run(const Timeline& timeline);

// By step from the graph's first: the end of its last task on the compute lane, that of the step before where it has
// none. What the next forward waits for counts to the next step.
std::vector<int64_t> step_ends_ns(const TaskGraph& graph, const Timeline& timeline);

// The second half of the steps, when what the first ones found idle has worn off. The graph has at least two steps.
Window steady_window(const TaskGraph& graph, const Timeline& timeline);

// Mean over the steps of the steady window.
double steady_step_s(const TaskGraph& graph, const Timeline& timeline);

// Time within the window in which the lanes of this kind work, summed over them.
int64_t busy_ns(const TaskGraph& graph, const Timeline& timeline, LaneKind lane, const Window& window);

// By step from the graph's first: the forward that comes first, which needs the step's data; -1 when there is none.
std::vector<int32_t> first_forwards(const TaskGraph& graph);

}  // namespace headrace::graph
