// Which ready task a lane takes next: the one decision that the simulator and the executor share.
// Pure and deterministic; one owner at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "headrace/graph/task_graph.h"

namespace headrace::graph {

// How lanes that do not run in program order choose among ready tasks.
enum class Order {
  kDeadline,  // earlier step first, in it the smaller deadline: what the next forward needs first goes first
  kArrival    // the one that became ready first
};

// The ready tasks of one kind of lane. The graph must outlive it. Equal keys: smaller task index first.
class ReadyQueue {
 public:
  ReadyQueue(const TaskGraph& graph, LaneKind lane, Order order);

  // `task` is of this kind of lane and ready.
  void add(int32_t task);
  // What to start next; empty when nothing is ready or, in program order, the next task is not.
  std::optional<int32_t> peek() const;
  // Removes what peek returns, which is not empty.
  int32_t pop();

 private:
  using Key = std::tuple<int64_t, int64_t, int32_t>;
  Key key_of(int32_t task);

  const TaskGraph& graph_;
  bool in_program_order_;
  Order order_;
  std::vector<int32_t> program_;  // in program order: all tasks of the lane
  size_t next_ = 0;               // of them
  int64_t num_arrived_ = 0;
  std::set<Key> ready_;
};

}  // namespace headrace::graph
