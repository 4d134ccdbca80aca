#include "headrace/graph/ready_queue.h"

namespace headrace::graph {

ReadyQueue::Key ReadyQueue::key_of(const Task& task, int64_t number) {
  if (in_program_order_) return {0, 0, number};
  if (order_ == Order::kArrival) return {num_arrived_++, 0, number};
  return {task.step + task.due_steps, task.deadline, number};
}

void ReadyQueue::announce(int64_t number) {
  if (in_program_order_) program_.push_back(number);
}

void ReadyQueue::add(const Task& task, int64_t number) { ready_.insert(key_of(task, number)); }

std::optional<int64_t> ReadyQueue::peek() const {
  if (ready_.empty()) return std::nullopt;
  const int64_t first = std::get<2>(*ready_.begin());
  if (in_program_order_ && first != program_.front()) return std::nullopt;
  return first;
}

int64_t ReadyQueue::pop() {
  const int64_t first = std::get<2>(*ready_.begin());
  ready_.erase(ready_.begin());
  if (in_program_order_) program_.pop_front();
  return first;
}

}  // namespace headrace::graph
