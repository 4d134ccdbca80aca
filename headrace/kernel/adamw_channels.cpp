#include "headrace/kernel/adamw_channels.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "headrace/base/errors.h"
#include "headrace/kernel/adamw_constants.h"
#include "headrace/kernel/channel_checks.h"
#include "headrace/kernel/column_pieces.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/adamw_channels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After highway.h: they hold code for the target at hand.
#include "headrace/kernel/adamw_pass-inl.h"
#include "headrace/kernel/window_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Those of a line over and over.
struct LineCorrections {
  const RepeatedCorrections& line;
  size_t at = 0;

  template <class D>
  HWY_INLINE Correction<hn::Vec<D>> after(D d, size_t i) const {
    return {hn::LoadU(d, line.step_size.data() + at + i), hn::LoadU(d, line.second_correction.data() + at + i)};
  }
  HWY_INLINE void move_on(size_t count) {
    at += count;
    if (at >= line.period) at -= line.period;
  }
};

template <class GradientIn, class Corrections>
void run_with(const WindowStretch& stretch, const WindowUpdate& window, const GradientIn& gradient,
              const Corrections& corrections) {
  const auto [m, v] = stretch.moments;
  Pass<Fp32Master, GradientIn, Corrections>{{{stretch.master}, {}}, m, v, gradient, corrections, window.adamw}.run(
      stretch.count);
}

template <class Corrections>
void run(const WindowStretch& stretch, const WindowUpdate& window, const Corrections& corrections) {
  const float mean_scale = window.mean_scale;
  if (window.slots.size() > 1) {
    return run_with(stretch, window, WindowSum{window.slots, mean_scale, stretch.first}, corrections);
  }
  with_scaled(window.slots[0], stretch.first, [&](const auto& gradient) {
    run_with(stretch, window, Scaled<std::decay_t<decltype(gradient)>>{gradient, mean_scale}, corrections);
  });
}

void update_lines(const WindowStretch& stretch, const WindowUpdate& window, const RepeatedCorrections& line) {
  run(stretch, window, LineCorrections{line});
}

void update_channel(const WindowStretch& stretch, const WindowUpdate& window, const BiasCorrection& correction) {
  run(stretch, window, SameCorrection{correction});
}

template <class D>
HWY_INLINE void accumulate_at(D d, const SlotPointers& slot, bool is_first, float* sum, size_t i) {
  const auto gradient = load_scaled(d, slot, i);
  hn::StoreU(is_first ? gradient : hn::Add(hn::LoadU(d, sum + i), gradient), d, sum + i);
}

void accumulate(const SlotPointers& slot, bool is_first, float* sum, size_t count) {
  const hn::CappedTag<float, kMaxLanes> d;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) accumulate_at(d, slot, is_first, sum, i);
  for (; i < count; ++i) accumulate_at(one, slot, is_first, sum, i);
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(update_lines);
HWY_EXPORT(update_channel);
HWY_EXPORT(accumulate);

constexpr size_t kTileElements = 4096;  // of a master that stay in the first-level cache

// The lines to update, and their corrections by position.
struct Chosen {
  const MatrixShape& shape;
  Lines lines;
  const BiasCorrections& corrections;

  size_t count() const { return corrections.step_size.size(); }
  size_t width() const { return static_cast<size_t>(line_width(shape, count())); }
};

// Whether there is anything to update.
bool check(const char* verb, const Chosen& chosen, const WindowGradient& gradient,
           std::initializer_list<size_t> lengths) {
  expect_length(verb, "second_correction", chosen.corrections.second_correction.size(), chosen.count());
  if (gradient.slots.empty()) throw InternalError(verb, "a window has 0 slots and must have at least 1.");
  const size_t need = compact_length(verb, chosen.shape, chosen.lines, chosen.count());
  for (const size_t have : lengths) expect_length(verb, "master, m or v", have, need);
  for (const WindowSlot& slot : gradient.slots) expect_length(verb, "gradient", length(slot.gradient), need);
  return need > 0;
}

std::vector<SlotPointers> slot_pointers(const WindowGradient& gradient) {
  std::vector<SlotPointers> slots;
  for (const WindowSlot& slot : gradient.slots) slots.push_back({pointers(slot.gradient), slot.scale});
  return slots;
}

std::vector<float> repeat(std::span<const float> values, size_t count) {
  std::vector<float> repeated(count);
  for (size_t i = 0; i < count; ++i) repeated[i] = i < values.size() ? values[i] : repeated[i - values.size()];
  return repeated;
}

RepeatedCorrections repeat(const BiasCorrections& corrections) {
  const size_t count = corrections.step_size.size();
  const size_t period = (kAdamWBlock + count - 1) / count * count;
  return {.step_size = repeat(corrections.step_size, period + kAdamWBlock),
          .second_correction = repeat(corrections.second_correction, period + kAdamWBlock),
          .period = period};
}

// One line a channel. master_of(line) is where its master begins.
template <class MasterOf>
void update_rows(const Chosen& chosen, const Moments& moments, const WindowUpdate& window, const MasterOf& master_of) {
  const size_t width = chosen.width();
  const auto begin = static_cast<size_t>(chosen.lines.begin), end = static_cast<size_t>(chosen.lines.end);
  for (size_t line = begin; line < end; ++line) {
    const size_t first = (line - begin) * width;
    const BiasCorrection correction{chosen.corrections.step_size[line], chosen.corrections.second_correction[line]};
    HWY_DYNAMIC_DISPATCH(update_channel)
    ({master_of(line), {moments.m + first, moments.v + first}, first, width}, window, correction);
  }
}

// Some lines at a time, gathered, updated and put back.
void update_selected_columns(const SelectedState& state, const Chosen& chosen, const WindowUpdate& window) {
  const ColumnPieces pieces = column_pieces(state.channels);
  const RepeatedCorrections line = repeat(chosen.corrections);
  const auto width = static_cast<size_t>(chosen.shape.width), count = chosen.count();
  const auto begin = static_cast<size_t>(chosen.lines.begin), end = static_cast<size_t>(chosen.lines.end);
  const size_t step = std::max<size_t>(1, kTileElements / count);
  std::vector<float> tile(step * count);
  for (size_t row = begin; row < end; row += step) {
    const MatrixRows<float> rows{state.matrix.data() + row * width, std::min(step, end - row), width};
    const size_t first = (row - begin) * count;
    gather_rows(pieces, {rows.first, rows.count, width}, tile.data());
    HWY_DYNAMIC_DISPATCH(update_lines)
    ({tile.data(), {state.m.data() + first, state.v.data() + first}, first, rows.count * count}, window, line);
    scatter_rows(pieces, tile.data(), rows);
  }
}

}  // namespace

BiasCorrections bias_corrections(const ChannelAdamW& adamw, std::span<const int64_t> updates) {
  BiasCorrections corrections;
  std::unordered_map<int64_t, BiasCorrection> known;  // pow is dear and the counters are few
  for (const int64_t update : updates) {
    if (update < 1) {
      throw InternalError("kernel.bias_corrections", "update " + std::to_string(update) + " must be at least 1.");
    }
    const auto [found, is_new] = known.try_emplace(update);
    if (is_new) found->second = bias_correction(adamw, update);
    corrections.step_size.push_back(found->second.step_size);
    corrections.second_correction.push_back(found->second.second_correction);
  }
  return corrections;
}

void adamw_update_channels(const CompactState& state, const WindowGradient& gradient, const MatrixShape& shape,
                           Lines lines, const BiasCorrections& corrections, const ChannelAdamW& adamw) {
  const Chosen chosen{shape, lines, corrections};
  const auto lengths = {state.master.size(), state.m.size(), state.v.size()};
  if (!check("kernel.adamw_update_channels", chosen, gradient, lengths)) return;
  const auto slots = slot_pointers(gradient);
  const WindowUpdate window{slots, gradient.mean_scale, constants_of(adamw)};
  float* master = state.master.data();
  const Moments moments{state.m.data(), state.v.data()};
  if (shape.axis == Axis::kColumns) {
    HWY_DYNAMIC_DISPATCH(update_lines)({master, moments, 0, state.master.size()}, window, repeat(corrections));
    return;
  }
  const auto begin = static_cast<size_t>(lines.begin);
  update_rows(chosen, moments, window, [&](size_t line) { return master + (line - begin) * chosen.width(); });
}

void adamw_update_selected(const SelectedState& state, const WindowGradient& gradient, const MatrixShape& shape,
                           Lines lines, const BiasCorrections& corrections, const ChannelAdamW& adamw) {
  constexpr auto kVerb = "kernel.adamw_update_selected";
  const Chosen chosen{shape, lines, corrections};
  expect_matrix(kVerb, state.matrix.size(), shape);
  expect_channels(kVerb, state.channels, shape);
  expect_length(kVerb, "corrections", chosen.count(), state.channels.size());
  if (!check(kVerb, chosen, gradient, {state.m.size(), state.v.size()})) return;
  const auto slots = slot_pointers(gradient);
  const WindowUpdate window{slots, gradient.mean_scale, constants_of(adamw)};
  if (shape.axis == Axis::kColumns) return update_selected_columns(state, chosen, window);
  update_rows(chosen, {state.m.data(), state.v.data()}, window, [&](size_t line) {
    return state.matrix.data() + static_cast<size_t>(state.channels[line]) * chosen.width();
  });
}

void accumulate_gradient(std::span<float> sum, const Gradient& gradient, float scale, bool is_first) {
  expect_length("kernel.accumulate_gradient", "gradient", length(gradient), sum.size());
  if (sum.empty()) return;
  HWY_DYNAMIC_DISPATCH(accumulate)({pointers(gradient), scale}, is_first, sum.data(), sum.size());
}

}  // namespace headrace::kernel
#endif
