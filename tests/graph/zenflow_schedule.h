// What a ZenFlow policy would ask for, step by step, for the tests: windows, merges and migrations that keep what
// zenflow_step.h asks of the policy, regular or random.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/graph/zenflow_step.h"

namespace headrace::graph {

struct ZenflowSettings {
  int64_t interval = 4;  // S >= 1
  bool is_staggered = false;
  bool is_overlapped = true;  // merges after backward S steps on; else before the next forward
  int64_t warmup_steps = 0;   // with a flush at each and no overlap
  double early_flush = 0;     // chance that a window ends before its time, block by block
  double migration = 0;       // chance that columns change sides where they may
  int64_t num_sums = 2;       // with running sums: in turn, window by window
  int64_t num_slots = 8;      // without: buffers in turn, step by step; >= interval
};

class ZenflowSchedule {
 public:
  // `base` has what does not change from step to step.
  ZenflowSchedule(ZenflowShape base, const ZenflowSettings& settings, uint64_t seed = 0)
      : settings_(settings), base_(std::move(base)), blocks_(base_.blocks.size()), rng_(seed) {}

  ZenflowShape next() {
    ZenflowShape shape = base_;
    shape.after_drain = step_ > 0 && drained_at_ == step_ - 1;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (shape.blocks[b].num_pieces > 0) plan(shape.blocks[b], blocks_[b], static_cast<int64_t>(b));
    }
    ++step_;
    return shape;
  }

  // All that is outstanding comes to the device; drain after it.
  ZenflowShape settle() {
    ZenflowShape shape = base_;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      Block& at = blocks_[b];
      ZenflowBlock& block = shape.blocks[b];
      block.adopts = std::exchange(at.has_migrated, false);
      block.flushes = !at.windows.empty() && at.windows.back().last == kOpen;
      block.merge = block.flushes || at.pending >= 0 ? Merge::kBeforeForward : Merge::kNone;
      if (block.merge != Merge::kNone) block.merge_from = at.pending >= 0 ? step_ - at.pending : 0;
      if (block.flushes) at.windows.back().last = step_;
      at.pending = -1;
    }
    drained_at_ = step_;
    ++step_;
    return shape;
  }

  const ZenflowSettings& settings() const { return settings_; }
  // The window of a block that the gradient of this step belongs to.
  int64_t window_of(int32_t block, int64_t step) const {
    const std::vector<Window>& windows = blocks_[static_cast<size_t>(block)].windows;
    const auto after = std::upper_bound(windows.begin(), windows.end(), step,
                                        [](int64_t s, const Window& window) { return s < window.first; });
    return after - windows.begin() - 1;
  }
  int64_t first_step_of(int32_t block, int64_t window) const { return window_at(block, window).first; }
  // The step whose host update applies the window; beyond all steps when none does.
  int64_t last_step_of(int32_t block, int64_t window) const { return window_at(block, window).last; }

 private:
  static constexpr int64_t kOpen = INT64_MAX;
  struct Window {
    int64_t first, last;
  };
  struct Block {
    std::vector<Window> windows;
    int64_t pending = -1;  // the step of an update that has not been merged
    int64_t due = 0;       // its merge's place
    bool has_migrated = false, has_migrated_in_window = false;
  };

  const Window& window_at(int32_t block, int64_t window) const {
    return blocks_[static_cast<size_t>(block)].windows[static_cast<size_t>(window)];
  }
  bool chance(double share) { return rng_.uniform() < share; }

  void plan(ZenflowBlock& block, Block& at, int64_t b) {
    block.adopts = std::exchange(at.has_migrated, false);
    if (at.windows.empty() || at.windows.back().last != kOpen) {
      at.windows.push_back({step_, kOpen});
      at.has_migrated_in_window = false;
    }
    const int64_t phase = settings_.is_staggered ? b : 0;
    const bool is_due = step_ < settings_.warmup_steps || (step_ + 1 + phase) % settings_.interval == 0;
    block.flushes = is_due || chance(settings_.early_flush);
    block.migrates = !at.has_migrated_in_window && chance(settings_.migration);
    plan_merge(block, at);
    plan_buffers(block, at);
    at.has_migrated = block.migrates;
    at.has_migrated_in_window |= block.migrates;
    if (!block.flushes) return;
    at.windows.back().last = at.pending = step_;
    at.due = block.due_steps = step_ < settings_.warmup_steps || !settings_.is_overlapped ? 0 : settings_.interval;
  }

  void plan_merge(ZenflowBlock& block, Block& at) {
    if (at.pending < 0) return;
    const bool is_next = at.due == 0 || (settings_.early_flush > 0 && chance(0.05));
    if (!is_next && step_ < at.pending + at.due && !block.flushes && !block.migrates) return;
    block.merge = is_next ? Merge::kBeforeForward : Merge::kAfterBackward;
    block.merge_from = step_ - std::exchange(at.pending, -1);
  }

  void plan_buffers(ZenflowBlock& block, const Block& at) const {
    const auto b = static_cast<int32_t>(&at - blocks_.data());
    if (block.accumulate_bytes > 0) {
      const auto window = static_cast<int64_t>(at.windows.size()) - 1;
      if (window >= settings_.num_sums) block.slot_freed_by = back_to(last_step_of(b, window - settings_.num_sums));
    } else if (step_ - settings_.num_slots >= at.windows.front().first) {
      block.slot_freed_by = back_to(last_step_of(b, window_of(b, step_ - settings_.num_slots)));
    }
  }
  // 0: nothing of it can be under way.
  int64_t back_to(int64_t step) const { return step > drained_at_ ? step_ - step : 0; }

  ZenflowSettings settings_;
  ZenflowShape base_;
  std::vector<Block> blocks_;
  Rng rng_;
  int64_t step_ = 0;
  int64_t drained_at_ = -1;  // the last step that was drained
};

// `num_blocks` equal blocks of 1000 bytes of each kind that moves, 3000 a window's update.
inline ZenflowShape equal_zenflow_blocks(int32_t num_blocks, int32_t num_pieces = 1) {
  ZenflowShape shape;
  ZenflowBlock block{.weight_bytes = 1000, .gradient_bytes = 1000, .update_bytes = 3000, .exchange_bytes = 100};
  block.num_pieces = num_pieces;
  shape.blocks.assign(static_cast<size_t>(num_blocks), block);
  shape.step.clip = true;
  return shape;
}

// Shape and settings for a run that meets all there is.
struct RandomZenflow {
  explicit RandomZenflow(uint64_t seed) {
    Rng rng(seed);
    shape = equal_zenflow_blocks(static_cast<int32_t>(1 + rng.below(5)));
    shape.step.accumulate = static_cast<int32_t>(1 + rng.below(3));
    shape.step.recompute = rng.below(3) == 0;
    shape.step.order = rng.below(2) == 0 ? ComputeOrder::kLayerMajor : ComputeOrder::kMicroBatchMajor;
    shape.step.host_workers = static_cast<int32_t>(1 + rng.below(3));
    shape.step.is_tied = rng.below(2) == 0;
    shape.send_slots = static_cast<int32_t>(1 + rng.below(5));
    shape.staging_slots = static_cast<int32_t>(1 + rng.below(5));
    settings.interval = static_cast<int64_t>(1 + rng.below(5));
    settings.is_staggered = rng.below(2) == 0;
    settings.is_overlapped = rng.below(4) > 0;
    settings.warmup_steps = static_cast<int64_t>(rng.below(2) * rng.below(6));
    settings.early_flush = rng.below(2) == 0 ? 0 : 0.1;
    settings.migration = rng.below(3) == 0 ? 0 : 0.2;
    const bool has_sum = rng.below(2) == 0;
    settings.num_sums = static_cast<int64_t>(1 + rng.below(3));
    settings.num_slots = settings.interval + static_cast<int64_t>(rng.below(7));
    for (ZenflowBlock& block : shape.blocks) {
      block.num_pieces = static_cast<int32_t>(rng.below(5));
      block.accumulate_bytes = has_sum ? 2000 : 0;
    }
  }

  ZenflowShape shape;
  ZenflowSettings settings;
};

}  // namespace headrace::graph
