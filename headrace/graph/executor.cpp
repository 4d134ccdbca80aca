#include "headrace/graph/executor.h"

#include <utility>

#include "headrace/base/errors.h"
#include "headrace/graph/executor_state.h"

namespace headrace::graph {

Executor::Executor(const ExecutorSettings& settings, Work work)
    : state_(std::make_shared<State>(settings, std::move(work))) {
  try {
    for (State::Lane& lane : state_->lanes) {
      const State::Lock lock(state_->mutex);
      lane.busy_since_ns = state_->now_ns();
      lane.thread = std::thread([state = state_, &lane] { state->serve(lane); });
      lane.has_exited = false;
      lane.is_busy = true;
    }
  } catch (...) {
    state_->stop();
    throw;
  }
}

Executor::~Executor() { state_->stop(); }

void Executor::run_step(const StepGraph& step) {
  State& state = *state_;
  int64_t idle_since_ns = state.now_ns();
  state.require_runnable(step);
  State::Lock lock(state.mutex);
  state.rethrow_error();
  state.hand_over(step, idle_since_ns);
  int64_t num_compute = 0;
  for (const Task& task : step.graph.tasks) num_compute += task.lane == LaneKind::kCompute ? 1 : 0;
  for (; num_compute > 0; --num_compute) {
    state.wait(lock, [&] { return state.queue_of(LaneKind::kCompute).peek().has_value(); });
    const State::TaskRef ref = state.begin(LaneKind::kCompute, 0);
    state.stall_ns += ref.step->run_of(ref.index).start_ns - idle_since_ns;
    idle_since_ns = state.run(lock, ref, 0);
  }
  state.rethrow_error();
}

void Executor::drain() {
  State::Lock lock(state_->mutex);
  state_->wait(lock, [&] { return state_->num_left == 0; });
}

std::shared_ptr<Executor::HeldWork> Executor::hold_host_work() { return std::make_shared<HeldWork>(state_); }

void Executor::wait_for_release() {
  State::Lock lock(state_->mutex);
  state_->wait_besides(lock, [&] { return !state_->is_holding(); });
}

Executor::HeldWork::HeldWork(std::shared_ptr<State> state) : state_(std::move(state)) {
  State::Lock lock(state_->mutex);
  state_->wait_besides(lock, [&] { return !state_->is_holding(); });
  first_step_ = state_->held_from = state_->num_steps;
}

Executor::HeldWork::~HeldWork() { release(); }

void Executor::HeldWork::wait_for_earlier() {
  State::Lock lock(state_->mutex);
  state_->wait_besides(lock, [&] { return state_->have_ended(first_step_); });
}

void Executor::HeldWork::release(int32_t block) {
  const State::Lock lock(state_->mutex);
  if (is_released_) return;
  state_->released.insert(block);
  state_->release_held();
}

void Executor::HeldWork::release() {
  const State::Lock lock(state_->mutex);
  if (!std::exchange(is_released_, true)) state_->end_hold();
}

double Executor::stall_s() const {
  const State::Lock lock(state_->mutex);
  return to_seconds(state_->stall_ns);
}

int64_t Executor::num_kept_tasks() const {
  const State::Lock lock(state_->mutex);
  int64_t count = 0;
  for (const auto& step : state_->steps) count += static_cast<int64_t>(step->runs.size());
  return count;
}

Recording Executor::recording() const {
  const State::Lock lock(state_->mutex);
  if (state_->settings.recorded_steps == 0 || state_->steps.empty() || state_->num_left > 0) {
    throw InternalError("graph.executor", "there is no recording: " + std::to_string(state_->settings.recorded_steps) +
                                              " steps are recorded, " + std::to_string(state_->num_steps) +
                                              " were run, " + std::to_string(state_->num_left) +
                                              " tasks have not ended.");
  }
  const int64_t origin_ns = state_->steps.front()->called_ns;
  std::vector<StepGraph> steps;
  Recording recording;
  for (const auto& step : state_->steps) {
    steps.push_back(step->step);
    recording.timeline.data_ready_ns.push_back(step->called_ns - origin_ns);
    for (const TaskRun& run : step->runs) {
      recording.timeline.runs.push_back({run.start_ns - origin_ns, run.end_ns - origin_ns, run.lane_index});
    }
  }
  recording.graph = join_steps(steps, state_->num_steps - static_cast<int64_t>(steps.size()));
  recording.graph.num_lanes = state_->settings.num_lanes;
  return recording;
}

}  // namespace headrace::graph
