#include "headrace/graph/simulator.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "headrace/graph/validate.h"

namespace headrace::graph {
namespace {

class Simulation {
 public:
  Simulation(const TaskGraph& graph, const SimulationSettings& settings)
      : graph_(graph), successors_(successors_of(graph)), num_missing_(graph.tasks.size(), 0) {
    timeline_.runs.resize(graph.tasks.size());
    for (const Edge& edge : graph.edges) ++num_missing_[static_cast<size_t>(edge.to)];
    for (size_t i = 0; i < kNumLaneKinds; ++i) {
      queues_.emplace_back(static_cast<LaneKind>(i), settings.order);
      is_busy_.emplace_back(static_cast<size_t>(std::max(0, graph.num_lanes[i])), false);
    }
    for (size_t i = 0; i < graph.tasks.size(); ++i) {
      queue_of(graph.tasks[i]).announce(static_cast<int64_t>(i));
    }
    hold_for_data(settings.data_ready_s);
    for (size_t i = 0; i < num_missing_.size(); ++i) {
      if (num_missing_[i] == 0) make_ready(static_cast<int32_t>(i));
    }
  }

  Timeline run() {
    start_ready();
    while (!events_.empty()) {
      now_ns_ = events_.top().time_ns;
      while (!events_.empty() && events_.top().time_ns == now_ns_) {
        const Event event = events_.top();
        events_.pop();
        if (event.is_data) {
          arrive(event.task);
        } else {
          free_lane(event.task);
          end(event.task);
        }
      }
      start_ready();
    }
    return std::move(timeline_);
  }

 private:
  struct Event {
    int64_t time_ns;
    int32_t task;
    bool is_data;
    auto operator<=>(const Event&) const = default;
  };

  // The step's data counts as one more predecessor of its first forward.
  void hold_for_data(const std::vector<double>& data_ready_s) {
    const std::vector<int32_t> forwards = first_forwards(graph_);
    for (size_t step = 0; step < data_ready_s.size(); ++step) {
      timeline_.data_ready_ns.push_back(to_ns(data_ready_s[step]));
      if (step >= forwards.size() || forwards[step] < 0) continue;
      ++num_missing_[static_cast<size_t>(forwards[step])];
      events_.push({timeline_.data_ready_ns.back(), forwards[step], true});
    }
  }

  const Task& task_at(int32_t task) const { return graph_.tasks[static_cast<size_t>(task)]; }
  TaskRun& run_of(int32_t task) { return timeline_.runs[static_cast<size_t>(task)]; }
  std::vector<bool>& lanes_of(int32_t task) { return is_busy_[static_cast<size_t>(task_at(task).lane)]; }

  ReadyQueue& queue_of(const Task& task) { return queues_[static_cast<size_t>(task.lane)]; }
  void make_ready(int32_t task) { queue_of(task_at(task)).add(task_at(task), task); }
  void arrive(int32_t task) {
    if (--num_missing_[static_cast<size_t>(task)] == 0) make_ready(task);
  }
  void end(int32_t task) {
    for (const int32_t successor : successors_[static_cast<size_t>(task)]) arrive(successor);
  }
  void free_lane(int32_t task) { lanes_of(task)[static_cast<size_t>(run_of(task).lane_index)] = false; }

  // The free lane of the smallest index; empty when all work.
  static std::optional<int32_t> free_of(const std::vector<bool>& is_busy) {
    for (size_t i = 0; i < is_busy.size(); ++i) {
      if (!is_busy[i]) return static_cast<int32_t>(i);
    }
    return std::nullopt;
  }

  // Again after any start: a task without cost may stand behind one with cost and make others ready at once.
  void start_ready() {
    while (start_all(true) || start_all(false)) {
    }
  }

  // Starts on every free lane what it takes next, if it costs nothing or if that does not matter. True when any did.
  bool start_all(bool only_free_of_cost) {
    bool has_started = false;
    for (size_t lane = 0; lane < kNumLaneKinds; ++lane) {
      while (true) {
        const auto next = queues_[lane].peek();
        const auto index = free_of(is_busy_[lane]);
        if (!next || !index) break;
        const auto task = static_cast<int32_t>(*next);
        const int64_t cost_ns = to_ns(task_at(task).cost_s);
        if (only_free_of_cost && cost_ns > 0) break;
        queues_[lane].pop();
        start(task, *index, cost_ns);
        has_started = true;
      }
    }
    return has_started;
  }

  void start(int32_t task, int32_t index, int64_t cost_ns) {
    run_of(task) = {now_ns_, now_ns_ + cost_ns, index};
    if (cost_ns == 0) return end(task);
    lanes_of(task)[static_cast<size_t>(index)] = true;
    events_.push({now_ns_ + cost_ns, task, false});
  }

  const TaskGraph& graph_;
  Neighbours successors_;
  std::vector<int32_t> num_missing_;  // by task: predecessors that have not ended, and data
  std::vector<ReadyQueue> queues_;    // by lane kind
  std::vector<std::vector<bool>> is_busy_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int64_t now_ns_ = 0;
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const TaskGraph& graph, const SimulationSettings& settings) {
  require_valid(graph);
  return Simulation(graph, settings).run();
}

}  // namespace headrace::graph
