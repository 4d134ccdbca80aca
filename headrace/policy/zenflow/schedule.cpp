#include "headrace/policy/zenflow/schedule.h"

#include <algorithm>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/policy/state.h"

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

Json UpdateSchedule::to_json() const {
  Json windows = Json::array();
  for (const Window& window : windows_) {
    windows.push_back({{"steps", window.steps},
                       {"length", window.length},
                       {"under_way_for", window.flushed_at < 0 ? 0 : step_ - window.flushed_at},
                       {"is_immediate", window.is_immediate},
                       {"last_selection", window.last_selection}});
  }
  return {{"step", step_}, {"interval", interval_}, {"windows", windows}};
}

void UpdateSchedule::restore(const Json& saved, const Kept& kept) {
  const Json& windows = fact(saved, "windows");
  if (!windows.is_array() || windows.size() != windows_.size()) {
    throw DataError("policy.restore", "the saved schedule is of " + std::to_string(windows.size()) +
                                          " blocks, the model has " + std::to_string(windows_.size()) + ".");
  }
  step_ = count_fact(saved, "step");
  const int64_t interval = count_fact(saved, "interval");
  if (kept.keeps_interval) interval_ = std::clamp(interval, kept.smallest, kept.longest);
  for (size_t block = 0; block < windows_.size(); ++block) {
    Window& window = windows_[block];
    window.steps = count_fact(windows[block], "steps");
    const int64_t length = count_fact(windows[block], "length");
    window.length = std::max(window.steps + 1, std::min(length, kept.longest));
    const int64_t under_way_for = count_fact(windows[block], "under_way_for");
    if (window.steps > step_ || (under_way_for > 0 && under_way_for != window.steps + 1)) {
      throw DataError("policy.restore", "after " + std::to_string(step_) + " steps the saved window of block " +
                                            std::to_string(block) + " has " + std::to_string(window.steps) +
                                            ", and the one before it is under way for " +
                                            std::to_string(under_way_for) + ".");
    }
    window.flushed_at = under_way_for > 0 ? step_ - under_way_for : -1;
    window.is_immediate = fact(windows[block], "is_immediate") == true;
    window.last_selection = count_fact(windows[block], "last_selection");
  }
}

void UpdateSchedule::forget_window(size_t block) {
  windows_[block].steps = 0;
  windows_[block].flushed_at = -1;
}

void UpdateSchedule::begin_after(int64_t steps) { step_ = std::min(steps, settings_.warmup_steps); }

}  // namespace headrace::policy::zenflow
