// What ZenFlow does with each block at each step: which gradients share a window, when a window ends, and which
// forward sees its update first. Decided here, done elsewhere. Paper: arXiv 2505.12242, section 3; ours differs in that
// the bound is enforced and windows may be staggered over blocks.
// Deterministic; one owner. Steps are counted by their updates from 0: a step without a token to learn is none.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/json.h"

namespace headrace::policy::zenflow {

struct ScheduleSettings {
  int64_t update_interval = 4;   // S [steps] >= 1: how many steps share a window
  int64_t warmup_steps = 1;      // U [steps] >= 1: until then every column is updated exactly at every step
  int64_t select_interval = 16;  // R [steps] >= 1: columns are chosen anew at the first window's end after so many
  bool overlaps = true;          // a window's update has the next window's time; else the next forward waits for it
  bool staggers = true;          // blocks end their windows at different steps (with overlap)
};

// The window under way of one block, as the step finds it.
struct BlockStep {
  int64_t position = 0;        // of this step in its window
  bool flushes = false;        // the window ends with this step
  bool selects = false;        // after this step columns change sides; only where the window ends
  bool merges_before = false;  // the update of the step before comes before this step's forward
  bool merges_after = false;   // the update of an earlier window comes after this step's backward
  int64_t merge_from = 0;      // steps since the step whose update that is, where one comes
  int64_t due_steps = 0;       // where it flushes: when its own update comes, in steps; 0: before the next forward
};

class UpdateSchedule {
 public:
  // Throws InternalError for values out of range.
  UpdateSchedule(const ScheduleSettings& settings, int32_t num_blocks);

  // What the next step does, by block. Advances.
  std::vector<BlockStep> next();
  // Windows that begin from now on are this long. >= 1.
  void set_update_interval(int64_t steps);
  int64_t update_interval() const { return interval_; }
  // Between steps: takes note that updates have come out of turn, those due before the next forward or (with `all`)
  // all. By block: steps since the step whose update it is, counted from the one that next() would return; 0: none.
  std::vector<int64_t> settle(bool all);
  // Ends every window that has steps in it with the last step; whoever calls brings its update at once. None may be
  // under way. By block whether there was one.
  std::vector<bool> end_windows();

  Json to_json() const;
  // Goes on from to_json() of a schedule of as many blocks, before the first step. Windows under way end where they
  // would have ended, after `longest` steps at most. `keeps_interval`: also how long windows are from then on, between
  // `smallest` and `longest`. Throws DataError.
  struct Kept {
    bool keeps_interval = false;
    int64_t smallest = 1, longest = 1;  // [steps]
  };
  void restore(const Json& saved, const Kept& kept);
  // Of the block's window under way: its steps so far, and how many it will have [steps].
  int64_t window_steps(size_t block) const { return windows_[block].steps; }
  int64_t window_length(size_t block) const { return windows_[block].length; }
  // After restoring: the block has neither a window nor an update under way.
  void forget_window(size_t block);
  // Before the first step: `steps` exact ones have been done elsewhere, at most the warm-up counts.
  void begin_after(int64_t steps);
  // Whether an update of the block is under way.
  bool is_under_way(size_t block) const { return windows_[block].flushed_at >= 0; }
  // It is, and merges before the next forward.
  bool is_due_before_forward(size_t block) const { return is_under_way(block) && windows_[block].is_immediate; }

 private:
  struct Window {
    int64_t steps = 0;           // in it so far
    int64_t length = 1;          // [steps] it will have
    int64_t flushed_at = -1;     // step whose update is under way; -1: none
    bool is_immediate = false;   // that update comes before the next forward
    int64_t last_selection = 0;  // step after which columns were chosen
  };

  BlockStep next_of(size_t block);
  void begin_window(size_t block);

  const ScheduleSettings settings_;
  int64_t interval_;
  int64_t step_ = 0;
  std::vector<Window> windows_;  // by block
};

}  // namespace headrace::policy::zenflow
