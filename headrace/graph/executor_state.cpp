#include "headrace/graph/executor_state.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/graph/validate.h"

namespace headrace::graph {
namespace {

constexpr std::string_view kPlace = "graph.executor";
constexpr double kLongestDeadline_s = 1e9;  // beyond it a clock of 63 bits would overflow

std::string text_of(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g s", seconds);
  return text;
}

}  // namespace

Executor::State::State(const ExecutorSettings& what, Work how)
    : settings(what),
      work(std::move(how)),
      start(std::chrono::steady_clock::now()),
      deadline_ns(to_ns(std::min(what.deadline_s, kLongestDeadline_s))) {
  if (!work || !(settings.deadline_s > 0) || settings.recorded_steps < 0) {
    throw InternalError(kPlace, "work to do, a deadline above 0 s (not " + std::to_string(settings.deadline_s) +
                                    ") and 0 or more recorded steps (not " + std::to_string(settings.recorded_steps) +
                                    ") are needed.");
  }
  for (size_t i = 0; i < kNumLaneKinds; ++i) {
    const auto kind = static_cast<LaneKind>(i);
    const int32_t count = settings.num_lanes[i];
    const int32_t least = kind == LaneKind::kCompute ? 1 : 0;
    if (count < least || (count > 1 && kind != LaneKind::kHostUpdate)) {
      throw InternalError(kPlace, std::to_string(count) + " lanes " + std::string(name_of(kind)) + ".");
    }
    queues.emplace_back(kind, settings.order);
    if (kind == LaneKind::kCompute) continue;
    for (int32_t index = 0; index < count; ++index) lanes.push_back({.kind = kind, .index = index});
  }
}

int64_t Executor::State::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
}

void Executor::State::require_runnable(const StepGraph& step) const {
  require_valid(step.graph);
  require_joinable(step);
  for (size_t i = 0; i < kNumLaneKinds; ++i) {
    if (step.graph.num_lanes[i] <= settings.num_lanes[i]) continue;
    throw InternalError(kPlace, "the step needs " + std::to_string(step.graph.num_lanes[i]) + " lanes " +
                                    std::string(name_of(static_cast<LaneKind>(i))) + ", there are " +
                                    std::to_string(settings.num_lanes[i]) + ".");
  }
}

void Executor::State::hand_over(const StepGraph& step, int64_t called_ns) {
  auto running = std::make_unique<RunningStep>(step, num_steps, num_tasks, called_ns);
  running->wait_for(steps);
  RunningStep& added = *running;
  steps.push_back(std::move(running));
  ++num_steps;
  num_tasks += added.num_left;
  num_left += added.num_left;
  const auto count = static_cast<int32_t>(added.num_left);
  for (int32_t i = 0; i < count; ++i) queue_of(added.task_at(i).lane).announce(added.first_number + i);
  for (int32_t i = 0; i < count; ++i) {
    if (added.num_missing[static_cast<size_t>(i)] == 0) make_ready({&added, i});
  }
  drop_ended_steps();
}

Executor::State::TaskRef Executor::State::find(int64_t number) const {
  const auto after = std::upper_bound(steps.begin(), steps.end(), number,
                                      [](int64_t n, const auto& step) { return n < step->first_number; });
  RunningStep* step = std::prev(after)->get();
  return {step, static_cast<int32_t>(number - step->first_number)};
}

void Executor::State::make_ready(const TaskRef& ref) {
  const LaneKind kind = ref.task().lane;
  if (is_held(ref.task())) return held.push_back(ref);
  queue_of(kind).add(ref.task(), ref.step->first_number + ref.index);
  if (kind == LaneKind::kCompute) {
    trainer_wake.notify_one();
  } else {
    lane_wake[static_cast<size_t>(kind)].notify_one();
  }
}

Executor::State::TaskRef Executor::State::begin(LaneKind kind, int32_t lane_index) {
  const TaskRef ref = find(queue_of(kind).pop());
  TaskRun& run = ref.step->run_of(ref.index);
  run.start_ns = now_ns();
  run.lane_index = lane_index;
  return ref;
}

int64_t Executor::State::run(Lock& lock, const TaskRef& ref, int32_t lane_index) {
  std::exception_ptr thrown;
  lock.unlock();
  try {
    work(ref.task(), lane_index);
  } catch (...) {
    thrown = std::current_exception();
  }
  const int64_t end_ns = now_ns();  // before the lock: no successor can start earlier
  lock.lock();
  if (thrown) {
    fail(std::move(thrown));
  } else {
    end(ref, end_ns);
  }
  return end_ns;
}

void Executor::State::end(const TaskRef& ref, int64_t end_ns) {
  RunningStep& step = *ref.step;
  const auto at = static_cast<size_t>(ref.index);
  step.runs[at].end_ns = end_ns;
  step.task_has_ended[at] = true;
  for (const int32_t successor : step.successors[at]) {
    if (step.arrive(successor)) make_ready({&step, successor});
  }
  for (const int64_t number : step.later_successors[at]) {
    const TaskRef later = find(number);
    if (later.step->arrive(later.index)) make_ready(later);
  }
  if (--step.num_left == 0) others_wake.notify_all();
  if (--num_left == 0) trainer_wake.notify_one();
  drop_ended_steps();
}

// The last one stays: the next step must be able to tell whether it has the tasks it is waited for.
void Executor::State::drop_ended_steps() {
  const auto kept = static_cast<size_t>(std::max<int64_t>(1, settings.recorded_steps));
  while (steps.size() > kept && steps.front()->has_ended()) steps.pop_front();
}

void Executor::State::fail(std::exception_ptr thrown) {
  if (!error) error = std::move(thrown);
  for (std::condition_variable& wake : lane_wake) wake.notify_all();
  trainer_wake.notify_one();
  others_wake.notify_all();
}

void Executor::State::rethrow_error() const {
  if (error) std::rethrow_exception(error);
}

// A lane that becomes busy meanwhile expires a whole deadline later, so that who sleeps wakes in time for it too.
void Executor::State::sleep_until_deadline(Lock& lock, std::condition_variable& wake) {
  const int64_t now = now_ns();
  int64_t until = now + deadline_ns;
  for (const Lane& lane : lanes) {
    if (!lane.is_busy) continue;
    if (expiry_ns(lane) <= now) return fail(hang_error(lane, now));
    until = std::min(until, expiry_ns(lane));
  }
  wake.wait_until(lock, start + std::chrono::nanoseconds(until));
}

bool Executor::State::is_held(const Task& task) const {
  return task.lane == LaneKind::kHostUpdate && task.step >= held_from && !released.contains(task.block);
}

void Executor::State::release_held() {
  for (const TaskRef& ref : std::exchange(held, {})) make_ready(ref);
}

void Executor::State::end_hold() {
  held_from = kNothing;
  released.clear();
  release_held();
  others_wake.notify_all();
}

bool Executor::State::have_ended(int64_t count) const {
  int64_t number = num_steps - static_cast<int64_t>(steps.size());
  return std::ranges::all_of(steps, [&](const auto& step) { return number++ >= count || step->has_ended(); });
}

std::exception_ptr Executor::State::hang_error(const Lane& lane, int64_t now) const {
  const std::string what = lane.task ? "running " + name_of(*lane.task) : "starting";
  return std::make_exception_ptr(
      RunError(kPlace, "lane " + name_of(lane.kind, lane.index) + " has been " + what + " for " +
                           text_of(to_seconds(now - lane.busy_since_ns)) + ", longer than the deadline of " +
                           text_of(settings.deadline_s) +
                           ". Look at the disk, link or cores it works with; a slow machine needs a longer deadline."));
}

void Executor::State::serve(Lane& lane) {
  std::exception_ptr thrown;
  try {
    if (settings.on_lane_start) settings.on_lane_start(lane.kind, lane.index);
  } catch (...) {
    thrown = std::current_exception();
  }
  Lock lock(mutex);
  if (thrown) fail(std::move(thrown));
  ReadyQueue& queue = queue_of(lane.kind);
  while (true) {
    lane.is_busy = false;
    lane_wake[static_cast<size_t>(lane.kind)].wait(lock, [&] { return should_stop() || queue.peek().has_value(); });
    if (should_stop()) break;
    const TaskRef ref = begin(lane.kind, lane.index);
    lane.is_busy = true;
    lane.busy_since_ns = ref.step->run_of(ref.index).start_ns;
    lane.task = ref.task();
    run(lock, ref, lane.index);
  }
  lane.has_exited = true;
  trainer_wake.notify_one();
}

void Executor::State::stop() {
  std::vector<Lane*> exited;
  {
    Lock lock(mutex);
    is_stopping = true;
    for (std::condition_variable& wake : lane_wake) wake.notify_all();
    for (Lane& lane : lanes) {
      while (!lane.has_exited && !(lane.is_busy && expiry_ns(lane) <= now_ns())) {
        const int64_t until = lane.is_busy ? expiry_ns(lane) : now_ns() + deadline_ns;
        trainer_wake.wait_until(lock, start + std::chrono::nanoseconds(until));
      }
      if (lane.has_exited) {
        exited.push_back(&lane);
      } else {
        lane.thread.detach();
      }
    }
  }
  for (Lane* lane : exited) {
    if (lane->thread.joinable()) lane->thread.join();
  }
}

}  // namespace headrace::graph
