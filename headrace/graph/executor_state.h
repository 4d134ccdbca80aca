// What the trainer and the lanes of an executor share. Part of executor.cpp; nobody else includes it.
// Lanes hold it by shared_ptr, so that one left behind touches nothing that has been freed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "headrace/graph/executor.h"
#include "headrace/graph/running_step.h"

namespace headrace::graph {

struct Executor::State {
  using Lock = std::unique_lock<std::mutex>;

  // A lane with a thread of its own. All but `thread` is guarded by the mutex.
  struct Lane {
    LaneKind kind;
    int32_t index;
    std::thread thread = {};
    bool has_exited = true;         // no thread, or it touches nothing any more
    bool is_busy = false;           // with on_lane_start or a task
    int64_t busy_since_ns = 0;      // when busy
    std::optional<Task> task = {};  // when busy with one
  };

  struct TaskRef {
    RunningStep* step;
    int32_t index;
    const Task& task() const { return step->task_at(index); }
  };

  State(const ExecutorSettings& settings, Work work);

  int64_t now_ns() const;
  // Throws InternalError when the step is no valid graph or needs lanes that are not there. No lock needed.
  void require_runnable(const StepGraph& step) const;

  // The rest is called with the mutex held.
  ReadyQueue& queue_of(LaneKind kind) { return queues[static_cast<size_t>(kind)]; }
  void hand_over(const StepGraph& step, int64_t called_ns);
  // Takes what the queue has first. Its peek is not empty.
  TaskRef begin(LaneKind kind, int32_t lane_index);
  // Does the task with the lock released. Its error, if any, ends the run; only without one are successors released.
  // Returns when it ended [ns].
  int64_t run(Lock& lock, const TaskRef& ref, int32_t lane_index);
  // The first error is kept; from now on nothing starts.
  void fail(std::exception_ptr thrown);
  void rethrow_error() const;
  // The trainer sleeps until `is_done`, an error, or a lane's deadline, which is one.
  template <typename Condition>
  void wait(Lock& lock, const Condition& is_done) {
    while (true) {
      rethrow_error();
      if (is_done()) return;
      sleep_until_deadline(lock, trainer_wake);
    }
  }
  // The same for anyone else, but what is done is done, whatever failed.
  template <typename Condition>
  void wait_besides(Lock& lock, const Condition& is_done) {
    while (!is_done()) {
      rethrow_error();
      sleep_until_deadline(lock, others_wake);
    }
  }
  // Whether all tasks of the first `count` steps have.
  bool have_ended(int64_t count) const;
  bool is_holding() const { return held_from != kNothing; }
  void release_held();  // of the blocks that are released
  void end_hold();
  // Until `wake` is told, or a lane's deadline, which then is the error.
  void sleep_until_deadline(Lock& lock, std::condition_variable& wake);

  // Body of a lane's thread; takes the lock itself.
  void serve(Lane& lane);
  // Ends all lanes or leaves those behind that hang; takes the lock itself.
  void stop();

  const ExecutorSettings settings;
  const Work work;
  const std::chrono::steady_clock::time_point start;
  const int64_t deadline_ns;

  std::mutex mutex;
  std::condition_variable trainer_wake;
  std::condition_variable others_wake;  // of who waits for steps or for a release
  std::array<std::condition_variable, kNumLaneKinds> lane_wake;
  std::vector<Lane> lanes;         // never resized once a thread runs
  std::vector<ReadyQueue> queues;  // by kind
  std::deque<std::unique_ptr<RunningStep>> steps;
  int64_t num_steps = 0;  // handed over
  int64_t num_tasks = 0;  // likewise
  int64_t num_left = 0;   // of them: not ended
  int64_t stall_ns = 0;
  std::exception_ptr error;
  bool is_stopping = false;
  // Host work of this step and of later ones is held, but that of the released blocks.
  static constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();
  int64_t held_from = kNothing;
  std::set<int32_t> released;
  std::vector<TaskRef> held;  // ready otherwise

 private:
  bool is_held(const Task& task) const;
  TaskRef find(int64_t number) const;
  void make_ready(const TaskRef& ref);
  void end(const TaskRef& ref, int64_t end_ns);
  void drop_ended_steps();
  int64_t expiry_ns(const Lane& lane) const { return lane.busy_since_ns + deadline_ns; }
  std::exception_ptr hang_error(const Lane& lane, int64_t now) const;
  bool should_stop() const { return is_stopping || error != nullptr; }
};

}  // namespace headrace::graph
