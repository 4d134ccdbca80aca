#include "headrace/kernel/adamw_channels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "headrace/base/errors.h"
#include "tests/kernel/every_target.h"
#include "tests/kernel/random_channels.h"

namespace headrace::kernel {
namespace {

constexpr double kLearningRate = 3e-4, kDecay = 0.1;

ChannelAdamW adamw_with_decay() {
  return {.learning_rate = kLearningRate, .keep = static_cast<float>(1 - kLearningRate * kDecay)};
}

// The gradients of a window's steps; some in bf16.
struct Window {
  Window(size_t count, size_t num_slots, bool has_bf16, uint64_t seed)
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

struct State {
  explicit State(size_t count, uint64_t seed)
      : master(random_values(count, seed)), m(random_values(count, seed + 1)), v(random_values(count, seed + 2)) {
    for (float& x : v) x *= x;
  }
  std::vector<float> master, m, v;
};

bool same_state(const State& a, const State& b) {
  return same_bytes(a.master, b.master) && same_bytes(a.m, b.m) && same_bytes(a.v, b.v);
}

std::vector<int64_t> random_counters(size_t count, Rng& rng) {
  std::vector<int64_t> counters(count);
  for (int64_t& counter : counters) counter = 1 + static_cast<int64_t>(rng.below(rng.below(2) == 0 ? 3 : 3000));
  return counters;
}

// One list of channels of a matrix with all that an update of it needs.
struct Subject {
  Subject(const ChosenChannels& chosen, size_t num_slots, bool has_bf16, Rng& rng)
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
  State updated_singly() const {
    State state = start;
    for (size_t i = 0; i < size(); ++i) {
      const float gradient = window.mean(i);
      const size_t position = shape.axis == Axis::kColumns ? i % width() : i / width();
      const AdamWStep step{.learning_rate = kLearningRate, .weight_decay = kDecay, .step = counters[position]};
      adamw_update(std::span(&state.master[i], 1), std::span(&state.m[i], 1), std::span(&state.v[i], 1),
                   std::span<const float>(&gradient, 1), step);
    }
    return state;
  }

  State updated(const std::vector<Lines>& parts) const {
    State state = start;
    for (const Lines part : parts) {
      const auto of = [&](std::vector<float>& values) { return std::span(values).subspan(begin(part), length(part)); };
      const auto slots = window.slots(begin(part), length(part));
      adamw_update_channels({of(state.master), of(state.m), of(state.v)}, {slots, window.mean_scale}, shape, part,
                            corrections, adamw_with_decay());
    }
    return state;
  }
  State updated() const { return updated({{0, lines()}}); }

  // With the master in place in `matrix`; the state's master is not used.
  State updated_in(std::vector<float>& matrix, const std::vector<Lines>& parts) const {
    State state = start;
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
  Window window;
  State start;
};

std::vector<Subject> many_subjects(uint64_t seed) {
  Rng rng(seed);
  std::vector<Subject> subjects;
  for (const ChosenChannels& chosen : many_choices(seed)) {
    for (const size_t num_slots : {1u, 3u}) subjects.emplace_back(chosen, num_slots, rng.below(2) == 0, rng);
  }
  return subjects;
}

TEST(AdamWChannels, EachElementIsUpdatedAsAdamWUpdatesItAlone) {
  for (const Subject& subject : many_subjects(1)) {
    ASSERT_TRUE(same_state(subject.updated(), subject.updated_singly()))
        << subject.shape.width << " wide, " << subject.channels.size() << " channels";
  }
}

// Case k = 1 of ZenFlow: all channels, one counter, a scale as clip factor.
TEST(AdamWChannels, OneCounterAndOneSlotAreAdamW) {
  const MatrixShape shape{33, 70, Axis::kColumns};
  for (const bool has_bf16 : {false, true}) {
    const Window window(33 * 70, 1, has_bf16, 2);
    State ours(33 * 70, 3), theirs = ours;
    const auto slots = window.slots(0, 33 * 70);
    const std::vector<int64_t> counters(70, 5);
    adamw_update_channels({ours.master, ours.m, ours.v}, {slots}, shape, {0, 33},
                          bias_corrections(adamw_with_decay(), counters), adamw_with_decay());
    adamw_update(theirs.master, theirs.m, theirs.v, slots[0].gradient,
                 {.learning_rate = kLearningRate, .weight_decay = kDecay, .step = 5, .gradient_scale = slots[0].scale});
    EXPECT_TRUE(same_state(ours, theirs));
  }
}

TEST(AdamWChannels, AgreesWithDoublePrecision) {
  Rng rng(4);
  const Subject subject(choose({40, 60, Axis::kColumns}, 20, rng), 4, true, rng);
  const State after = subject.updated();
  for (size_t i = 0; i < subject.size(); ++i) {
    double g = 0;
    for (size_t slot = 0; slot < 4; ++slot)
      g += static_cast<double>(subject.window.scales[slot]) * subject.window.values[slot][i];
    g /= 4;
    const auto t = static_cast<double>(subject.counters[i % subject.width()]);
    const double m = 0.9 * subject.start.m[i] + 0.1 * g, v = 0.999 * subject.start.v[i] + 0.001 * g * g;
    const double move = kLearningRate * m / (1 - std::pow(0.9, t)) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    const double expected = subject.start.master[i] * (1 - kLearningRate * kDecay) - move;
    // fp32 sums of gradients of opposite signs lose digits that the mean then lacks.
    ASSERT_NEAR(after.master[i], expected, 1e-6 * (std::abs(subject.start.master[i]) + std::abs(move))) << i;
  }
}

TEST(AdamWChannels, CutsIntoLinesDoNotChangeOneBit) {
  Rng rng(5);
  for (const Subject& subject : many_subjects(6)) {
    ASSERT_TRUE(same_state(subject.updated(), subject.updated(random_cuts(subject.lines(), rng))))
        << subject.shape.width << " wide, " << subject.channels.size() << " channels";
  }
}

TEST(AdamWChannels, EveryInstructionSetGivesTheSameBits) {
  Rng rng(7);
  for (const Axis axis : {Axis::kColumns, Axis::kRows}) {
    for (const size_t num_slots : {1u, 4u}) {
      for (const bool has_bf16 : {false, true}) {
        const Subject subject(choose({23, 57, axis}, 6, rng), num_slots, has_bf16, rng);
        const State best = subject.updated();
        std::vector<float> best_matrix(23 * 57, 0.5f);
        subject.updated_in(best_matrix, {{0, subject.lines()}});
        for_every_target([&] {
          EXPECT_TRUE(same_state(subject.updated(), best));
          std::vector<float> matrix(23 * 57, 0.5f);
          subject.updated_in(matrix, {{0, subject.lines()}});
          EXPECT_TRUE(same_bytes(matrix, best_matrix));
        });
      }
    }
  }
}

TEST(AdamWChannels, AMasterInPlaceIsUpdatedAsACompactOne) {
  Rng rng(8);
  std::vector<Subject> subjects = many_subjects(9);
  subjects.emplace_back(choose({30, 5000, Axis::kColumns}, 300, rng), 2, false, rng);  // a line larger than a tile
  subjects.emplace_back(choose({300, 500, Axis::kColumns}, 450, rng), 2, false, rng);  // many lines a tile
  for (const Subject& subject : subjects) {
    const MatrixShape& shape = subject.shape;
    std::vector<float> matrix(static_cast<size_t>(shape.num_elements()), 7.0f), expected = matrix;
    scatter_channels(subject.start.master, shape, subject.channels, {0, subject.lines()}, matrix);
    const State compact = subject.updated();
    scatter_channels(compact.master, shape, subject.channels, {0, subject.lines()}, expected);
    const State selected = subject.updated_in(matrix, random_cuts(subject.lines(), rng));
    ASSERT_TRUE(same_bytes(matrix, expected) && same_bytes(selected.m, compact.m) && same_bytes(selected.v, compact.v))
        << shape.width << " wide, " << subject.channels.size() << " channels";
  }
}

// Channels that have seen 0 to 6 updates go on together: each update of each moves the learning rate.
TEST(AdamWChannels, AConstantGradientMovesTheLearningRateAtEveryCount) {
  constexpr size_t kChannels = 7;
  const MatrixShape shape{1, kChannels, Axis::kColumns};
  const ChannelAdamW adamw{.learning_rate = 1e-3};
  std::vector<float> master(kChannels), m(kChannels), v(kChannels);
  const std::vector<float> gradient(kChannels, 1.0f);
  std::vector<int64_t> counters(kChannels);
  for (int64_t step = 1; step <= 60; ++step) {
    const size_t first = step < 7 ? kChannels - static_cast<size_t>(step) : 0;  // one more joins in at each step
    const auto of = [&](auto& values) { return std::span(values).subspan(first); };
    for (int64_t& counter : of(counters)) ++counter;
    const std::vector<float> before = master;
    const std::vector<WindowSlot> slots = {{std::span<const float>(gradient).subspan(first)}};
    adamw_update_channels({of(master), of(m), of(v)}, {slots}, shape, {0, 1}, bias_corrections(adamw, of(counters)),
                          adamw);
    for (size_t i = first; i < kChannels; ++i) ASSERT_NEAR(master[i] - before[i], -0.001, 2e-8) << "step " << step;
  }
  EXPECT_EQ(counters.front() + 6, counters.back());
}

TEST(AdamWChannels, ARunningSumGivesTheBitsOfTheSlots) {
  for (const Subject& subject : many_subjects(10)) {
    std::vector<float> sum(subject.size(), 1e30f);
    bool is_first = true;
    for (const WindowSlot& slot : subject.window.slots(0, subject.size())) {
      accumulate_gradient(sum, slot.gradient, slot.scale, is_first);
      is_first = false;
    }
    State state = subject.start;
    const std::vector<WindowSlot> slots = {{std::span<const float>(sum)}};
    adamw_update_channels({state.master, state.m, state.v}, {slots, subject.window.mean_scale}, subject.shape,
                          {0, subject.lines()}, subject.corrections, adamw_with_decay());
    ASSERT_TRUE(same_state(state, subject.updated()));
  }
}

TEST(AdamWChannels, EveryInstructionSetAccumulatesTheSameBits) {
  const Window window(1003, 2, true, 11);
  const auto accumulated = [&] {
    std::vector<float> sum(1003);
    for (size_t slot : {0u, 1u}) {
      accumulate_gradient(sum, window.slots(0, 1003)[slot].gradient, window.scales[slot], slot == 0);
    }
    return sum;
  };
  std::vector<float> expected(1003);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = window.values[0][i] * window.scales[0] + window.values[1][i] * window.scales[1];
  }
  for_every_target([&] { EXPECT_TRUE(same_bytes(accumulated(), expected)); });
}

TEST(AdamWChannels, CorrectionsAreRoundedOnceFromDouble) {
  const ChannelAdamW adamw{.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95};
  const std::vector<int64_t> counters = {1, 1, 7, 1, 100'000};
  const BiasCorrections corrections = bias_corrections(adamw, counters);
  ASSERT_EQ(corrections.step_size.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const auto t = static_cast<double>(counters[i]);
    EXPECT_EQ(corrections.step_size[i], static_cast<float>(0.01 / (1 - std::pow(0.8, t))));
    EXPECT_EQ(corrections.second_correction[i], static_cast<float>(1 / std::sqrt(1 - std::pow(0.95, t))));
  }
}

TEST(AdamWChannels, WhatDoesNotFitIsOurBug) {
  const MatrixShape shape{2, 3, Axis::kColumns};
  const ChannelAdamW adamw;
  const std::vector<int64_t> counters = {1, 2}, uncounted = {1, 0};
  EXPECT_THROW(bias_corrections(adamw, uncounted), InternalError);
  const BiasCorrections corrections = bias_corrections(adamw, counters);
  std::vector<float> master(4), m(4), v(4), matrix(6), three(3);
  const std::vector<int32_t> channels = {2, 0}, outside = {2, 3}, one = {1};
  const std::vector<WindowSlot> slots = {{std::span<const float>(master)}},
                                short_slots = {{std::span<const float>(three)}};
  const auto update = [&](const CompactState& state, const std::vector<WindowSlot>& window, Lines lines) {
    adamw_update_channels(state, {window}, shape, lines, corrections, adamw);
  };
  EXPECT_NO_THROW(update({master, m, v}, slots, {0, 2}));
  EXPECT_THROW(update({three, m, v}, slots, {0, 2}), InternalError);
  EXPECT_THROW(update({master, m, three}, slots, {0, 2}), InternalError);
  EXPECT_THROW(update({master, m, v}, short_slots, {0, 2}), InternalError);
  EXPECT_THROW(update({master, m, v}, {}, {0, 2}), InternalError);
  EXPECT_THROW(update({master, m, v}, slots, {0, 1}), InternalError);
  EXPECT_THROW(update({master, m, v}, slots, {1, 3}), InternalError);
  const auto select = [&](std::span<float> of, const std::vector<int32_t>& list) {
    adamw_update_selected({of, list, m, v}, {slots}, shape, {0, 2}, corrections, adamw);
  };
  EXPECT_NO_THROW(select(matrix, channels));
  EXPECT_THROW(select(master, channels), InternalError);
  EXPECT_THROW(select(matrix, outside), InternalError);
  EXPECT_THROW(select(matrix, one), InternalError);
  EXPECT_THROW(accumulate_gradient(three, slots[0].gradient, 1, true), InternalError);
}

TEST(AdamWChannels, NothingChosenIsFine) {
  const std::vector<WindowSlot> slots = {{std::span<const float>()}};
  std::vector<float> matrix(6);
  EXPECT_NO_THROW(adamw_update_channels({}, {slots}, {2, 3}, {0, 2}, {}, {}));
  EXPECT_NO_THROW(adamw_update_selected({matrix, {}, {}, {}}, {slots}, {2, 3, Axis::kRows}, {0, 0}, {}, {}));
  EXPECT_NO_THROW(accumulate_gradient({}, slots[0].gradient, 1, false));
}

}  // namespace
}  // namespace headrace::kernel
