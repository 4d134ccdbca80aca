#include "headrace/graph/validate.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "headrace/base/errors.h"

namespace headrace::graph {
namespace {

constexpr double kMaxRun_s = 4e9;     // a timeline counts nanoseconds in 63 bits
constexpr size_t kMaxNamedTasks = 8;  // of a cycle

using Faults = std::vector<Fault>;

const Task& task_at(const TaskGraph& graph, int32_t index) { return graph.tasks[static_cast<size_t>(index)]; }

void check_lanes(const TaskGraph& graph, Faults& faults) {
  for (size_t i = 0; i < kNumLaneKinds; ++i) {
    const auto lane = static_cast<LaneKind>(i);
    const int32_t count = graph.num_lanes[i];
    if (count > 1 && lane != LaneKind::kHostUpdate) {
      faults.push_back({FaultKind::kTooManyLanes,
                        std::to_string(count) + " lanes " + std::string(name_of(lane)) + ", there is one."});
    }
  }
  for (const Task& task : graph.tasks) {
    if (static_cast<size_t>(task.lane) < kNumLaneKinds && graph.lanes_of(task.lane) > 0) continue;
    faults.push_back({FaultKind::kUnknownLane,
                      name_of(task) + " is for lane " + std::string(name_of(task.lane)) + ", of which there is none."});
  }
}

void check_tasks(const TaskGraph& graph, Faults& faults) {
  std::set<std::tuple<TaskKind, LaneKind, int32_t, int32_t, int32_t, int64_t>> seen;
  double total_s = 0;
  for (const Task& task : graph.tasks) {
    if (!seen.insert({task.kind, task.lane, task.block, task.micro_batch, task.piece, task.step}).second) {
      faults.push_back({FaultKind::kRepeatedTask, name_of(task) + " is there twice."});
    }
    if (!(task.cost_s >= 0) || !(task.cost_s <= kMaxRun_s)) {
      faults.push_back({FaultKind::kBadCost, name_of(task) + " costs " + std::to_string(task.cost_s) + " s."});
    } else {
      total_s += task.cost_s;
    }
  }
  if (total_s > kMaxRun_s) {
    faults.push_back({FaultKind::kBadCost, "all tasks cost " + std::to_string(total_s) + " s, at most " +
                                               std::to_string(kMaxRun_s) + " s can be timed."});
  }
}

void check_edge(const TaskGraph& graph, const Edge& edge, Faults& faults) {
  const auto count = static_cast<int32_t>(graph.tasks.size());
  for (const int32_t end : {edge.from, edge.to}) {
    if (end >= 0 && end < count) continue;
    faults.push_back({FaultKind::kUnknownTask, "an edge from " + std::to_string(edge.from) + " to " +
                                                   std::to_string(edge.to) + ", of " + std::to_string(count) +
                                                   " tasks."});
    return;
  }
  const Task& from = task_at(graph, edge.from);
  const Task& to = task_at(graph, edge.to);
  if (edge.from == edge.to) {
    faults.push_back({FaultKind::kSelfEdge, name_of(from) + " waits for itself."});
  } else if (from.step > to.step) {
    faults.push_back({FaultKind::kBackwardInTime, name_of(to) + " waits for " + name_of(from) + "."});
  }
}

// The names along one cycle: from a task that never becomes ready, back to what it waits for, until one comes again.
std::string cycle_text(const TaskGraph& graph, const std::vector<int32_t>& order) {
  std::vector<bool> is_stuck(graph.tasks.size(), true);
  for (const int32_t task : order) is_stuck[static_cast<size_t>(task)] = false;
  std::vector<int32_t> waits_for(graph.tasks.size(), -1);
  for (const Edge& edge : edges_with_program_order(graph)) {
    if (is_stuck[static_cast<size_t>(edge.from)]) waits_for[static_cast<size_t>(edge.to)] = edge.from;
  }
  auto at = static_cast<int32_t>(std::find(is_stuck.begin(), is_stuck.end(), true) - is_stuck.begin());
  std::vector<int32_t> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    at = waits_for[static_cast<size_t>(at)];
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::string text = name_of(task_at(graph, at));
  for (size_t i = 1; i < std::min(path.size(), kMaxNamedTasks); ++i)
    text += " waits for " + name_of(task_at(graph, path[i]));
  return text + (path.size() > kMaxNamedTasks ? " waits for others, which wait for it." : " waits for the first.");
}

}  // namespace

std::vector<Fault> faults_of(const TaskGraph& graph) {
  Faults faults;
  check_lanes(graph, faults);
  check_tasks(graph, faults);
  for (const Edge& edge : graph.edges) check_edge(graph, edge, faults);
  if (!faults.empty()) return faults;
  const std::vector<int32_t> order = topological_order(graph);
  if (order.size() < graph.tasks.size()) faults.push_back({FaultKind::kCycle, cycle_text(graph, order)});
  return faults;
}

void require_valid(const TaskGraph& graph) {
  const std::vector<Fault> faults = faults_of(graph);
  if (!faults.empty()) throw InternalError("graph.validate", faults.front().text);
}

}  // namespace headrace::graph
