#include "headrace/policy/zenflow/schedule.h"

#include <algorithm>
#include <string>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::policy::zenflow {

UpdateSchedule::UpdateSchedule(const ScheduleSettings& settings, int32_t num_blocks)
    : settings_(settings), interval_(settings.update_interval), windows_(static_cast<size_t>(num_blocks)) {
  if (std::min({settings.update_interval, settings.warmup_steps, settings.select_interval}) >= 1) return;
  throw InternalError("policy.zenflow", "update interval " + std::to_string(settings.update_interval) + ", warm-up " +
                                            std::to_string(settings.warmup_steps) + " and select interval " +
                                            std::to_string(settings.select_interval) + " must be at least 1 step.");
}

std::vector<BlockStep> UpdateSchedule::next() {
  std::vector<BlockStep> steps;
  for (size_t block = 0; block < windows_.size(); ++block) steps.push_back(next_of(block));
  ++step_;
  return steps;
}

BlockStep UpdateSchedule::next_of(size_t block) {
  Window& window = windows_[block];
  if (window.steps == 0) begin_window(block);
  BlockStep step;
  step.position = window.steps++;
  step.flushes = window.steps == window.length;
  if (window.flushed_at >= 0) {
    step.merges_before = window.is_immediate;
    step.merges_after = !window.is_immediate && step.flushes;
    if (step.merges_before || step.merges_after) step.merge_from = step_ - std::exchange(window.flushed_at, -1);
  }
  if (!step.flushes) return step;
  const bool is_warm = step_ + 1 >= settings_.warmup_steps;
  step.selects =
      is_warm && (window.last_selection == 0 || step_ + 1 - window.last_selection >= settings_.select_interval);
  if (step.selects) window.last_selection = step_ + 1;
  window.is_immediate = step_ < settings_.warmup_steps || !settings_.overlaps;
  window.flushed_at = step_;
  window.steps = 0;
  if (!window.is_immediate) step.due_steps = interval_;
  return step;
}

// The first windows after the warm-up are of all lengths up to S, so that afterwards blocks end theirs one after the
// other.
void UpdateSchedule::begin_window(size_t block) {
  Window& window = windows_[block];
  if (step_ < settings_.warmup_steps) {
    window.length = 1;
  } else if (step_ == settings_.warmup_steps && settings_.overlaps && settings_.staggers) {
    window.length = 1 + static_cast<int64_t>(block) % interval_;
  } else {
    window.length = interval_;
  }
}

void UpdateSchedule::set_update_interval(int64_t steps) {
  if (steps < 1) throw InternalError("policy.zenflow", "an update interval of " + std::to_string(steps) + " steps.");
  interval_ = steps;
}

std::vector<int64_t> UpdateSchedule::settle(bool all) {
  std::vector<int64_t> came(windows_.size(), 0);
  for (size_t block = 0; block < windows_.size(); ++block) {
    Window& window = windows_[block];
    if (window.flushed_at < 0 || !(all || window.is_immediate)) continue;
    came[block] = step_ - std::exchange(window.flushed_at, -1);
  }
  return came;
}

std::vector<bool> UpdateSchedule::end_windows() {
  std::vector<bool> ended;
  for (Window& window : windows_) {
    ended.push_back(window.steps > 0);
    if (window.flushed_at >= 0) throw InternalError("policy.zenflow", "a window ends while an update is under way.");
    window.steps = 0;
  }
  return ended;
}

}  // namespace headrace::policy::zenflow
