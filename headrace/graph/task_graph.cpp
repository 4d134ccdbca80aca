#include "headrace/graph/task_graph.h"

#include <map>
#include <tuple>

namespace headrace::graph {
namespace {

constexpr int32_t kNone = -1;

}  // namespace

std::string name_of(const Task& task) {
  std::string name(name_of(task.kind));
  name += "(";
  if (task.block != kWholeModel) name += "block " + std::to_string(task.block) + ", ";
  if (task.micro_batch != kWholeStep) name += "micro-batch " + std::to_string(task.micro_batch) + ", ";
  if (task.piece != kWholeBlock) name += "piece " + std::to_string(task.piece) + ", ";
  name += "step " + std::to_string(task.step) + ")";
  const bool has_lanes = task.kind == TaskKind::kRelease || task.kind == TaskKind::kAdopt;
  return has_lanes ? name + " on " + std::string(name_of(task.lane)) : name;
}

int32_t TaskGraph::add(const Task& task) {
  tasks.push_back(task);
  return static_cast<int32_t>(tasks.size()) - 1;
}

Neighbours predecessors_of(const TaskGraph& graph) {
  Neighbours predecessors(graph.tasks.size());
  for (const Edge& edge : graph.edges) predecessors[static_cast<size_t>(edge.to)].push_back(edge.from);
  return predecessors;
}

Neighbours successors_of(const TaskGraph& graph) {
  Neighbours successors(graph.tasks.size());
  for (const Edge& edge : graph.edges) successors[static_cast<size_t>(edge.from)].push_back(edge.to);
  return successors;
}

std::vector<int32_t> num_pieces_of(const TaskGraph& graph) {
  std::map<std::tuple<int64_t, TaskKind, LaneKind, int32_t, int32_t>, int32_t> counts;
  std::vector<const int32_t*> count_of;
  for (const Task& task : graph.tasks) {
    int32_t& count = counts[{task.step, task.kind, task.lane, task.block, task.micro_batch}];
    ++count;
    count_of.push_back(&count);
  }
  std::vector<int32_t> pieces;
  for (const int32_t* count : count_of) pieces.push_back(*count);
  return pieces;
}

std::vector<Edge> edges_with_program_order(const TaskGraph& graph) {
  std::vector<Edge> edges = graph.edges;
  std::array<int32_t, kNumLaneKinds> last{};
  last.fill(kNone);
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    const LaneKind lane = graph.tasks[i].lane;
    if (!runs_in_program_order(lane)) continue;
    int32_t& previous = last[static_cast<size_t>(lane)];
    if (previous != kNone) edges.push_back({previous, static_cast<int32_t>(i)});
    previous = static_cast<int32_t>(i);
  }
  return edges;
}

std::vector<int32_t> topological_order(const TaskGraph& graph) {
  Neighbours successors(graph.tasks.size());
  std::vector<int32_t> num_missing(graph.tasks.size(), 0);
  for (const Edge& edge : edges_with_program_order(graph)) {
    successors[static_cast<size_t>(edge.from)].push_back(edge.to);
    ++num_missing[static_cast<size_t>(edge.to)];
  }
  std::vector<int32_t> order;
  order.reserve(graph.tasks.size());
  for (size_t i = 0; i < num_missing.size(); ++i) {
    if (num_missing[i] == 0) order.push_back(static_cast<int32_t>(i));
  }
  for (size_t next = 0; next < order.size(); ++next) {
    for (const int32_t to : successors[static_cast<size_t>(order[next])]) {
      if (--num_missing[static_cast<size_t>(to)] == 0) order.push_back(to);
    }
  }
  return order;
}

}  // namespace headrace::graph
