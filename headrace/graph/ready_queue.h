// Which ready task a lane takes next: the one decision that the simulator and the executor share.
// Deterministic; one owner at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <tuple>

#include "headrace/graph/task_graph.h"

namespace headrace::graph {

// How lanes that do not run in program order choose among ready tasks.
enum class Order {
  kDeadline,  // due in the earlier step first, in it the smaller deadline: what is needed first goes first
  kArrival    // the one that became ready first
};

// The ready tasks of one kind of lane. Tasks go by a number that grows along the program; a graph's index is one, and
// who runs step after step counts on. Equal keys: smaller number first.
class ReadyQueue {
 public:
  ReadyQueue(LaneKind lane, Order order) : in_program_order_(runs_in_program_order(lane)), order_(order) {}

  // The program of the lane goes on with this task; called for every task of the lane, in order, before add.
  void announce(int64_t number);
  // The task with this number is of this kind of lane and ready.
  void add(const Task& task, int64_t number);
  // What to start next; empty when nothing is ready or, in program order, the next task is not.
  std::optional<int64_t> peek() const;
  // Removes what peek returns, which is not empty.
  int64_t pop();

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t>;
  Key key_of(const Task& task, int64_t number);

  bool in_program_order_;
  Order order_;
  std::deque<int64_t> program_;  // in program order: announced tasks that have not been popped
  int64_t num_arrived_ = 0;
  std::set<Key> ready_;
};

}  // namespace headrace::graph
