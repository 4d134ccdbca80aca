#include "headrace/graph/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "headrace/base/errors.h"

namespace headrace::graph {
namespace {

constexpr double kNsPerSecond = 1e9;

int64_t first_step_of(const TaskGraph& graph) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const Task& task : graph.tasks) first = std::min(first, task.step);
  return first;
}

size_t num_steps_of(const TaskGraph& graph) {
  if (graph.tasks.empty()) return 0;
  int64_t last = std::numeric_limits<int64_t>::min();
  for (const Task& task : graph.tasks) last = std::max(last, task.step);
  return static_cast<size_t>(last - first_step_of(graph)) + 1;
}

size_t require_two_steps(const TaskGraph& graph) {
  const size_t steps = num_steps_of(graph);
  if (steps < 2) throw InternalError("graph.timeline", std::to_string(steps) + " steps show no steady state, 2 would.");
  return steps;
}

}  // namespace

int64_t to_ns(double seconds) { return std::llround(seconds * kNsPerSecond); }
double to_seconds(int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; }

Window whole_run(const Timeline& timeline) {
  Window window;
  for (const TaskRun& run : timeline.runs) window.end_ns = std::max(window.end_ns, run.end_ns);
  return window;
}

std::vector<int64_t> step_ends_ns(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<int64_t> ends(num_steps_of(graph), 0);
  if (ends.empty()) return ends;
  const int64_t first = first_step_of(graph);
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    if (graph.tasks[i].lane != LaneKind::kCompute) continue;
    int64_t& end = ends[static_cast<size_t>(graph.tasks[i].step - first)];
    end = std::max(end, timeline.runs[i].end_ns);
  }
  for (size_t step = 1; step < ends.size(); ++step) ends[step] = std::max(ends[step], ends[step - 1]);
  return ends;
}

Window steady_window(const TaskGraph& graph, const Timeline& timeline) {
  const size_t steps = require_two_steps(graph);
  const std::vector<int64_t> ends = step_ends_ns(graph, timeline);
  return {ends[steps / 2 - 1], ends.back()};
}

double steady_step_s(const TaskGraph& graph, const Timeline& timeline) {
  const size_t steps = require_two_steps(graph);
  return to_seconds(steady_window(graph, timeline).length_ns()) / static_cast<double>(steps - steps / 2);
}

int64_t busy_ns(const TaskGraph& graph, const Timeline& timeline, LaneKind lane, const Window& window) {
  int64_t busy = 0;
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    if (graph.tasks[i].lane != lane) continue;
    const TaskRun& run = timeline.runs[i];
    busy += std::max<int64_t>(0, std::min(run.end_ns, window.end_ns) - std::max(run.start_ns, window.begin_ns));
  }
  return busy;
}

std::vector<int32_t> first_forwards(const TaskGraph& graph) {
  std::vector<int32_t> forwards(num_steps_of(graph), -1);
  if (forwards.empty()) return forwards;
  const int64_t first = first_step_of(graph);
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    int32_t& forward = forwards[static_cast<size_t>(graph.tasks[i].step - first)];
    if (graph.tasks[i].kind == TaskKind::kForward && forward < 0) forward = static_cast<int32_t>(i);
  }
  return forwards;
}

}  // namespace headrace::graph
