#include "headrace/kernel/adamw_channels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "headrace/base/errors.h"
#include "tests/kernel/every_target.h"
#include "tests/kernel/random_updates.h"

namespace headrace::kernel {
namespace {

TEST(AdamWChannels, EachElementIsUpdatedAsAdamWUpdatesItAlone) {
  for (const RandomUpdate& subject : many_updates(1)) {
    ASSERT_TRUE(same_state(subject.updated(), subject.updated_singly()))
        << subject.shape.width << " wide, " << subject.channels.size() << " channels";
  }
}

// Case k = 1 of ZenFlow: all channels, one counter, a scale as clip factor.
TEST(AdamWChannels, OneCounterAndOneSlotAreAdamW) {
  const MatrixShape shape{33, 70, Axis::kColumns};
  for (const bool has_bf16 : {false, true}) {
    const RandomWindow window(33 * 70, 1, has_bf16, 2);
    RandomState ours(33 * 70, 3), theirs = ours;
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
  const RandomUpdate subject(choose({40, 60, Axis::kColumns}, 20, rng), 4, true, rng);
  const RandomState after = subject.updated();
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
  for (const RandomUpdate& subject : many_updates(6)) {
    ASSERT_TRUE(same_state(subject.updated(), subject.updated(random_cuts(subject.lines(), rng))))
        << subject.shape.width << " wide, " << subject.channels.size() << " channels";
  }
}

TEST(AdamWChannels, EveryInstructionSetGivesTheSameBits) {
  Rng rng(7);
  for (const Axis axis : {Axis::kColumns, Axis::kRows}) {
    for (const size_t num_slots : {1u, 4u}) {
      for (const bool has_bf16 : {false, true}) {
        const RandomUpdate subject(choose({23, 57, axis}, 6, rng), num_slots, has_bf16, rng);
        const RandomState best = subject.updated();
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
  std::vector<RandomUpdate> subjects = many_updates(9);
  subjects.emplace_back(choose({30, 5000, Axis::kColumns}, 300, rng), 2, false, rng);  // a line larger than a tile
  subjects.emplace_back(choose({300, 500, Axis::kColumns}, 450, rng), 2, false, rng);  // many lines a tile
  for (const RandomUpdate& subject : subjects) {
    const MatrixShape& shape = subject.shape;
    std::vector<float> matrix(static_cast<size_t>(shape.num_elements()), 7.0f), expected = matrix;
    scatter_channels(subject.start.master, shape, subject.channels, {0, subject.lines()}, matrix);
    const RandomState compact = subject.updated();
    scatter_channels(compact.master, shape, subject.channels, {0, subject.lines()}, expected);
    const RandomState selected = subject.updated_in(matrix, random_cuts(subject.lines(), rng));
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
  for (const RandomUpdate& subject : many_updates(10)) {
    std::vector<float> sum(subject.size(), 1e30f);
    bool is_first = true;
    for (const WindowSlot& slot : subject.window.slots(0, subject.size())) {
      accumulate_gradient(sum, slot.gradient, slot.scale, is_first);
      is_first = false;
    }
    RandomState state = subject.start;
    const std::vector<WindowSlot> slots = {{std::span<const float>(sum)}};
    adamw_update_channels({state.master, state.m, state.v}, {slots, subject.window.mean_scale}, subject.shape,
                          {0, subject.lines()}, subject.corrections, adamw_with_decay());
    ASSERT_TRUE(same_state(state, subject.updated()));
  }
}

TEST(AdamWChannels, EveryInstructionSetAccumulatesTheSameBits) {
  const RandomWindow window(1003, 2, true, 11);
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
