#include "headrace/graph/stall.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

namespace headrace::graph {
namespace {

constexpr int32_t kNone = -1;

std::string kind_of(const StallReason& reason) {
  if (reason.wait == WaitFor::kData) return "data";
  if (reason.wait == WaitFor::kHandoff) return "handoff";
  return std::string(name_of(reason.kind));
}

class Attribution {
 public:
  Attribution(const TaskGraph& graph, const Timeline& timeline)
      : graph_(graph), timeline_(timeline), predecessors_(predecessors_of(graph)) {
    order_lanes();
    hold_for_data();
  }

  StallTable run(const Window& window) {
    int64_t busy_until = 0;
    const auto explain_until = [&](int64_t end, int32_t task) {
      explain({std::max(busy_until, window.begin_ns), std::min(end, window.end_ns)}, task);
    };
    for (const int32_t task : compute_) {
      explain_until(run_of(task).start_ns, task);
      busy_until = std::max(busy_until, run_of(task).end_ns);
    }
    explain_until(window.end_ns, kNone);
    StallTable table{.window = window, .idle_ns = 0, .rows = {}};
    for (const auto& [reason, ns] : total_ns_) {
      table.rows.push_back({reason, ns});
      table.idle_ns += ns;
    }
    std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
    return table;
  }

 private:
  const TaskRun& run_of(int32_t task) const { return timeline_.runs[static_cast<size_t>(task)]; }

  // Tasks of each lane as they ran. Tasks of no length at the same moment stand in an order that edges allow.
  void order_lanes() {
    std::vector<int32_t> order = topological_order(graph_);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return std::pair(run_of(a).start_ns, run_of(a).end_ns) < std::pair(run_of(b).start_ns, run_of(b).end_ns);
    });
    before_.assign(order.size(), kNone);
    std::map<std::pair<LaneKind, int32_t>, int32_t> last;
    for (const int32_t task : order) {
      const LaneKind lane = graph_.tasks[static_cast<size_t>(task)].lane;
      const auto [at, is_first] = last.try_emplace({lane, run_of(task).lane_index}, task);
      if (!is_first) before_[static_cast<size_t>(task)] = std::exchange(at->second, task);
      if (lane == LaneKind::kCompute) compute_.push_back(task);
      if (last_ == kNone || run_of(task).end_ns >= run_of(last_).end_ns) last_ = task;
    }
  }

  // In a simulated run a step's data holds up its first forward. In a real one it holds up its first compute task, be
  // it a merge; in a simulated one that task waited for others to its last moment, so that this does not show.
  void hold_for_data() {
    data_ns_.assign(graph_.tasks.size(), 0);
    int64_t first_step = std::numeric_limits<int64_t>::max();
    for (const Task& task : graph_.tasks) first_step = std::min(first_step, task.step);
    std::vector<int32_t> first_computes(timeline_.data_ready_ns.size(), kNone);
    for (const int32_t task : compute_) {
      const auto step = static_cast<size_t>(graph_.tasks[static_cast<size_t>(task)].step - first_step);
      if (step >= first_computes.size() || run_of(task).start_ns < timeline_.data_ready_ns[step]) continue;
      if (first_computes[step] == kNone) first_computes[step] = task;
    }
    for (const std::vector<int32_t>& held : {first_computes, first_forwards(graph_)}) {
      for (size_t step = 0; step < std::min(held.size(), timeline_.data_ready_ns.size()); ++step) {
        if (held[step] != kNone) data_ns_[static_cast<size_t>(held[step])] = timeline_.data_ready_ns[step];
      }
    }
  }

  // The predecessor, or the task before it on its lane, that ended last: what kept it from starting earlier.
  int32_t blocker_of(int32_t task) const {
    if (task == kNone) return last_;
    int32_t blocker = before_[static_cast<size_t>(task)];
    for (const int32_t other : predecessors_[static_cast<size_t>(task)]) {
      if (blocker == kNone || run_of(other).end_ns > run_of(blocker).end_ns) blocker = other;
    }
    return blocker;
  }

  // Walks back from the wait's end and gives each part of it a reason. Bounded: no task comes twice.
  void explain(Window wait, int32_t task) {
    for (size_t hops = 0; wait.length_ns() > 0 && hops <= graph_.tasks.size(); ++hops) {
      const int32_t blocker = blocker_of(task);
      const int64_t blocked_until = blocker == kNone ? 0 : run_of(blocker).end_ns;
      const int64_t data_ns = task == kNone ? 0 : data_ns_[static_cast<size_t>(task)];
      take_from(wait, std::max(blocked_until, data_ns), {.wait = WaitFor::kHandoff});
      if (data_ns > blocked_until) take_from(wait, blocked_until, {.wait = WaitFor::kData});
      if (blocker == kNone) break;
      const Task& blocking = graph_.tasks[static_cast<size_t>(blocker)];
      take_from(wait, run_of(blocker).start_ns, {.kind = blocking.kind, .block = blocking.block});
      task = blocker;
    }
    take_from(wait, wait.begin_ns, {.wait = WaitFor::kHandoff});
  }

  // The wait's last part, from `begin` on, had this reason.
  void take_from(Window& wait, int64_t begin, const StallReason& reason) {
    begin = std::max(begin, wait.begin_ns);
    if (begin >= wait.end_ns) return;
    total_ns_[reason] += wait.end_ns - begin;
    wait.end_ns = begin;
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  Neighbours predecessors_;
  std::vector<int32_t> before_;   // by task: the one before it on its lane
  std::vector<int32_t> compute_;  // tasks of the compute lane as they ran
  std::vector<int64_t> data_ns_;  // by task: when the data it needs had come
  int32_t last_ = kNone;          // the task that ends last
  std::map<StallReason, int64_t> total_ns_;
};

}  // namespace

std::string name_of(const StallReason& reason) {
  if (reason.wait != WaitFor::kTask || reason.block == kWholeModel) return kind_of(reason);
  return kind_of(reason) + " of block " + std::to_string(reason.block);
}

double StallTable::share() const {
  return window.length_ns() > 0 ? static_cast<double>(idle_ns) / static_cast<double>(window.length_ns()) : 0;
}

std::string StallTable::text() const {
  struct Line {
    std::string kind;
    int64_t ns;
    StallRow worst;
  };
  std::vector<Line> lines;
  for (const StallRow& row : rows) {  // longest first, so the first row of a kind is its worst
    const auto same = [&](const Line& line) { return line.kind == kind_of(row.reason); };
    const auto found = std::find_if(lines.begin(), lines.end(), same);
    if (found != lines.end()) {
      found->ns += row.ns;
    } else {
      lines.push_back({kind_of(row.reason), row.ns, row});
    }
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.ns > b.ns; });
  std::string text;
  const auto add = [&](const std::string& name, int64_t ns, const std::string& note) {
    char line[160];
    const double length = static_cast<double>(std::max<int64_t>(1, window.length_ns()));
    std::snprintf(line, sizeof line, "%-14s %12.6f s %6.2f %%", name.c_str(), to_seconds(ns),
                  100 * static_cast<double>(ns) / length);
    text += line + note + "\n";
  };
  for (const Line& line : lines) {
    const bool has_block = line.worst.reason.block != kWholeModel;
    add(line.kind, line.ns, has_block ? "  most for block " + std::to_string(line.worst.reason.block) : "");
  }
  add("idle", idle_ns, "");
  return text;
}

StallTable attribute_stall(const TaskGraph& graph, const Timeline& timeline, const Window& window) {
  return Attribution(graph, timeline).run(window);
}

}  // namespace headrace::graph
