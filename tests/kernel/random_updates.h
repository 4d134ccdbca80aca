// Updates of a part of a matrix's channels, drawn at random, for the tests of AdamW by channels.
#pragma once

#include <span>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/kernel/adamw_channels.h"
#include "tests/kernel/random_channels.h"

namespace headrace::kernel {

inline constexpr double kLearningRate = 3e-4, kDecay = 0.1;

inline ChannelAdamW adamw_with_decay() {
  return {.learning_rate = kLearningRate, .keep = static_cast<float>(1 - kLearningRate * kDecay)};
}

// The gradients of a window's steps; some in bf16.
struct RandomWindow {
  RandomWindow(size_t count, size_t num_slots, bool has_bf16, uint64_t seed)
      : mean_scale(1.0f / static_cast<float>(num_slots)) {
    for (size_t slot = 0; slot < num_slots; ++slot) {
      values.push_back(random_values(count, seed + slot));
      narrow.emplace_back(has_bf16 && slot % 3 != 1 ? count : 0);
      scales.push_back(0.37f + 0.1f * static_cast<float>(slot));
      if (narrow.back().empty()) continue;
      to_bf16(values.back(), narrow.back());
      for (size_t i = 0; i < count; ++i) values.back()[i] = to_float(narrow.back()[i]);
    }
  }

  std::vector<WindowSlot> slots(size_t begin, size_t count) const {
    std::vector<WindowSlot> result;
    for (size_t slot = 0; slot < values.size(); ++slot) {
      Gradient gradient = std::span(values[slot]).subspan(begin, count);
      if (!narrow[slot].empty()) gradient = std::span(narrow[slot]).subspan(begin, count);
      result.push_back({gradient, scales[slot]});
    }
    return result;
  }

  float mean(size_t i) const {
    float sum = values[0][i] * scales[0];
    for (size_t slot = 1; slot < values.size(); ++slot) sum = sum + values[slot][i] * scales[slot];
    return sum * mean_scale;
  }

  std::vector<std::vector<float>> values;
  std::vector<std::vector<Bf16>> narrow;
  std::vector<float> scales;
  float mean_scale;
};

struct RandomState {
  explicit RandomState(size_t count, uint64_t seed)
      : master(random_values(count, seed)), m(random_values(count, seed + 1)), v(random_values(count, seed + 2)) {
    for (float& x : v) x *= x;
  }
  std::vector<float> master, m, v;
};

inline bool same_state(const RandomState& a, const RandomState& b) {
  return same_bytes(a.master, b.master) && same_bytes(a.m, b.m) && same_bytes(a.v, b.v);
}

inline std::vector<int64_t> random_counters(size_t count, Rng& rng) {
  std::vector<int64_t> counters(count);
  for (int64_t& counter : counters) counter = 1 + static_cast<int64_t>(rng.below(rng.below(2) == 0 ? 3 : 3000));
  return counters;
}

// One list of channels of a matrix with all that an update of it needs.
struct RandomUpdate {
  RandomUpdate(const ChosenChannels& chosen, size_t num_slots, bool has_bf16, Rng& rng)
      : shape(chosen.shape),
        channels(chosen.deferred),
        counters(random_counters(channels.size(), rng)),
        corrections(bias_corrections(adamw_with_decay(), counters)),
        window(size(), num_slots, has_bf16, rng.next()),
        start(size(), rng.next()) {}

  int64_t lines() const { return num_lines(shape, channels.size()); }
  size_t width() const { return static_cast<size_t>(line_width(shape, channels.size())); }
  size_t size() const { return static_cast<size_t>(lines()) * width(); }

  // Every element alone, with the kernel that knows one counter.
  RandomState updated_singly() const {
    RandomState state = start;
    for (size_t i = 0; i < size(); ++i) {
      const float gradient = window.mean(i);
      const size_t position = shape.axis == Axis::kColumns ? i % width() : i / width();
      const AdamWStep step{.learning_rate = kLearningRate, .weight_decay = kDecay, .step = counters[position]};
      adamw_update(std::span(&state.master[i], 1), std::span(&state.m[i], 1), std::span(&state.v[i], 1),
                   std::span<const float>(&gradient, 1), step);
    }
    return state;
  }

  RandomState updated(const std::vector<Lines>& parts) const {
    RandomState state = start;
    for (const Lines part : parts) {
      const auto of = [&](std::vector<float>& values) { return std::span(values).subspan(begin(part), length(part)); };
      const auto slots = window.slots(begin(part), length(part));
      adamw_update_channels({of(state.master), of(state.m), of(state.v)}, {slots, window.mean_scale}, shape, part,
                            corrections, adamw_with_decay());
    }
    return state;
  }
  RandomState updated() const { return updated({{0, lines()}}); }

  // With the master in place in `matrix`; the state's master is not used.
  RandomState updated_in(std::vector<float>& matrix, const std::vector<Lines>& parts) const {
    RandomState state = start;
    for (const Lines part : parts) {
      const auto of = [&](std::vector<float>& values) { return std::span(values).subspan(begin(part), length(part)); };
      const auto slots = window.slots(begin(part), length(part));
      adamw_update_selected({matrix, channels, of(state.m), of(state.v)}, {slots, window.mean_scale}, shape, part,
                            corrections, adamw_with_decay());
    }
    return state;
  }

  size_t begin(Lines part) const { return static_cast<size_t>(part.begin) * width(); }
  size_t length(Lines part) const { return static_cast<size_t>(part.count()) * width(); }

  MatrixShape shape;
  std::vector<int32_t> channels;
  std::vector<int64_t> counters;
  BiasCorrections corrections;
  RandomWindow window;
  RandomState start;
};

inline std::vector<RandomUpdate> many_updates(uint64_t seed) {
  Rng rng(seed);
  std::vector<RandomUpdate> updates;
  for (const ChosenChannels& chosen : many_choices(seed)) {
    for (const size_t num_slots : {1u, 3u}) updates.emplace_back(chosen, num_slots, rng.below(2) == 0, rng);
  }
  return updates;
}

}  // namespace headrace::kernel
