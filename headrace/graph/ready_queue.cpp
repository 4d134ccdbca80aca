#include "headrace/graph/ready_queue.h"

namespace headrace::graph {

ReadyQueue::ReadyQueue(const TaskGraph& graph, LaneKind lane, Order order)
    : graph_(graph), in_program_order_(runs_in_program_order(lane)), order_(order) {
  if (!in_program_order_) return;
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    if (graph.tasks[i].lane == lane) program_.push_back(static_cast<int32_t>(i));
  }
}

ReadyQueue::Key ReadyQueue::key_of(int32_t task) {
  if (in_program_order_) return {0, 0, task};
  if (order_ == Order::kArrival) return {num_arrived_++, 0, task};
  const Task& ready = graph_.tasks[static_cast<size_t>(task)];
  return {ready.step, ready.deadline, task};
}

void ReadyQueue::add(int32_t task) { ready_.insert(key_of(task)); }

std::optional<int32_t> ReadyQueue::peek() const {
  if (ready_.empty()) return std::nullopt;
  const int32_t first = std::get<int32_t>(*ready_.begin());
  if (in_program_order_ && first != program_[next_]) return std::nullopt;
  return first;
}

int32_t ReadyQueue::pop() {
  const int32_t first = std::get<int32_t>(*ready_.begin());
  ready_.erase(ready_.begin());
  if (in_program_order_) ++next_;
  return first;
}

}  // namespace headrace::graph
