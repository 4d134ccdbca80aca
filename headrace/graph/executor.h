// Runs steps for real: one thread a lane, the compute lane on the calling thread, events between lanes. What a task
// does is the policy's; when it may start is the graph's, in the order the simulator uses (ready_queue.h).
// One owner: the trainer thread constructs, runs, drains and destroys it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "headrace/graph/ready_queue.h"
#include "headrace/graph/step_graph.h"
#include "headrace/graph/task_graph.h"
#include "headrace/graph/timeline.h"

namespace headrace::graph {

struct ExecutorSettings {
  // Threads by kind of lane; that of compute is the caller's and must be 1. A step may ask for fewer, never for more;
  // it gets all.
  std::array<int32_t, kNumLaneKinds> num_lanes{};
  Order order = Order::kDeadline;
  // [s] > 0. A task (or on_lane_start) that takes longer on another lane while the compute lane or drain() waits ends
  // the run.
  double deadline_s = 60;
  // Steps of which times are kept for recording(); 0: none.
  int64_t recorded_steps = 0;
  // Called first on each lane's thread (not on the caller's): to pin it, to name it. May throw: fails the run.
  std::function<void(LaneKind lane, int32_t lane_index)> on_lane_start;
};

// Tasks as they ran: steps joined with their cross-step edges, as join_steps does, and when each ran.
struct Recording {
  TaskGraph graph;
  Timeline timeline;
};

class Executor {
 public:
  // Does one task; called on the task's lane. What it throws ends the run.
  using Work = std::function<void(const Task& task, int32_t lane_index)>;

  Executor(const ExecutorSettings& settings, Work work);
  // Tells the lanes to stop after their current task, and joins them. A lane that is busy past the deadline is left
  // behind: what `work` refers to must then outlive it. Blocks for one deadline at most.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Hands all tasks of the step to the lanes, runs its compute tasks in program order and returns when the last of them
  // has ended; other lanes may go on with what the next step waits for. Task::step is set to the number of steps run
  // before. Throws what a task threw, on whatever lane, at the next compute task's start or at once where it waits, and
  // RunError naming lane and task when one hung; the first of them is kept: no task starts any more, lanes stop after
  // their current one, and every call throws the same. Throws InternalError, and runs on, when the step is not valid,
  // needs lanes that are not there or waits for a task that the step before does not have. Earlier steps are forgotten
  // when all their tasks have ended: an edge from one is then satisfied, and that it has such a task is not checked.
  void run_step(const StepGraph& step);

  // Returns when every task of every step has ended. Throws like run_step.
  void drain();

  class HeldWork;
  // For a copy of what host workers change: from now on they begin no task of a step that has not been handed over yet,
  // until its block is released; tasks of steps before go on. Waits for the end of an earlier hold. Throws likewise.
  std::shared_ptr<HeldWork> hold_host_work();
  // Returns when nothing is held. Throws likewise.
  void wait_for_release();

  // [s] the compute lane waited inside run_step since construction.
  double stall_s() const;

  // Tasks held in memory: of the last step, of steps that have not ended or follow one that has not, of those recorded.
  int64_t num_kept_tasks() const;

  // The last recorded_steps steps, after drain(); time 0 is when the first of them was handed over, data_ready_ns when
  // each was. Throws InternalError when nothing was recorded or tasks have not ended.
  Recording recording() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Any thread; may outlive its executor. Its end releases everything.
class Executor::HeldWork {
 public:
  explicit HeldWork(std::shared_ptr<State> state);
  ~HeldWork();
  HeldWork(const HeldWork&) = delete;
  HeldWork& operator=(const HeldWork&) = delete;

  // Returns when every task of the steps before has ended, even if a later step failed. Throws like run_step.
  void wait_for_earlier();
  void release(int32_t block);
  void release();

 private:
  const std::shared_ptr<State> state_;
  bool is_released_ = false;
  int64_t first_step_;  // that is held
};

}  // namespace headrace::graph
