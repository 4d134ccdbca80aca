#include "headrace/kernel/adamw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"
#include "tests/kernel/every_target.h"

namespace headrace::kernel {
namespace {

struct State {
  explicit State(size_t count, float value = 0) : master(count, value), m(count), v(count), gradient(count) {}
  void update(const AdamWStep& step, size_t begin, size_t end) {
    const size_t n = end - begin;
    adamw_update(std::span(master).subspan(begin, n), std::span(m).subspan(begin, n), std::span(v).subspan(begin, n),
                 std::span<const float>(gradient).subspan(begin, n), step);
  }
  void update(const AdamWStep& step) { update(step, 0, master.size()); }
  std::vector<float> master, m, v, gradient;
};

State random_state(size_t count, uint64_t seed) {
  State state(count);
  Rng rng(seed);
  for (float& x : state.master) x = static_cast<float>(rng.normal());
  for (float& x : state.gradient) x = static_cast<float>(rng.normal());
  return state;
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Case "AdamW table": p = 1, g = 1, -.5, .25, lr .1, wd .01.
TEST(AdamW, FollowsTheTable) {
  State state(1, 1.0f);
  const float gradients[] = {1.0f, -0.5f, 0.25f};
  const double expected[] = {0.8990000010, 0.8714672974, 0.8365529158};
  for (int64_t t = 1; t <= 3; ++t) {
    state.gradient[0] = gradients[t - 1];
    state.update({.learning_rate = 0.1, .weight_decay = 0.01, .step = t});
    EXPECT_NEAR(state.master[0], expected[t - 1], 1.2e-7) << "step " << t;  // one fp32 ulp at 1
  }
}

// Case "chunks": the same bits whole, in 2, 7, 1000 chunks.
TEST(AdamW, ChunksDoNotChangeOneBit) {
  constexpr size_t kCount = 1'000'003;
  State whole = random_state(kCount, 1);
  for (int64_t t = 1; t <= 3; ++t) whole.update({.weight_decay = 0.1, .step = t, .gradient_scale = 0.37f});
  for (size_t chunks : {2u, 7u, 1000u}) {
    State split = random_state(kCount, 1);
    for (int64_t t = 1; t <= 3; ++t) {
      for (size_t c = 0; c < chunks; ++c) {
        split.update({.weight_decay = 0.1, .step = t, .gradient_scale = 0.37f}, kCount * c / chunks,
                     kCount * (c + 1) / chunks);
      }
    }
    EXPECT_TRUE(same_bytes(whole.master, split.master) && same_bytes(whole.m, split.m) && same_bytes(whole.v, split.v))
        << chunks << " chunks";
  }
}

TEST(AdamW, EveryInstructionSetGivesTheSameBits) {
  State best = random_state(1003, 2);
  best.update({.weight_decay = 0.1});
  for_every_target([&] {
    State state = random_state(1003, 2);
    state.update({.weight_decay = 0.1});
    EXPECT_TRUE(same_bytes(best.master, state.master));
  });
}

// Case "groups": wd 0.1 and 0, lr 1e-3, p = 1, g = 0.
TEST(AdamW, DecayAloneAndNothingAtAll) {
  State decayed(1, 1.0f), kept(1, 1.0f);
  decayed.update({.learning_rate = 1e-3, .weight_decay = 0.1});
  kept.update({.learning_rate = 1e-3, .weight_decay = 0});
  EXPECT_FLOAT_EQ(decayed.master[0], 0.9999f);
  EXPECT_EQ(kept.master[0], 1.0f);
}

// Case "resume counter": step 59 after resuming at 58 with constant gradient 1 moves the learning rate.
TEST(AdamW, ConstantGradientMovesTheLearningRateAtEveryStep) {
  State state(1);
  state.gradient[0] = 1;
  for (int64_t t = 1; t <= 59; ++t) {
    const float before = state.master[0];
    state.update({.learning_rate = 1e-3, .step = t});
    EXPECT_NEAR(state.master[0] - before, -0.001, 2e-8) << "step " << t;
  }
}

// Case "stagnation", master part: 100 updates of 6e-4 move p from 1 to 0.94.
TEST(AdamW, SmallUpdatesAddUp) {
  State state(1, 1.0f);
  state.gradient[0] = 1;
  for (int64_t t = 1; t <= 100; ++t) state.update({.learning_rate = 6e-4, .step = t});
  EXPECT_NEAR(state.master[0], 0.94, 1e-5);
}

// Against the formula in double, over many magnitudes.
TEST(AdamW, AgreesWithDoublePrecision) {
  State state = random_state(4096, 3);
  Rng rng(4);
  for (float& g : state.gradient) g *= static_cast<float>(std::exp(20 * (rng.uniform() - 0.5)));
  const std::vector<float> start = state.master;
  const AdamWStep step{.learning_rate = 3e-4, .weight_decay = 0.1, .gradient_scale = 0.5f};
  state.update(step);
  for (size_t i = 0; i < start.size(); ++i) {
    const double g = 0.5 * state.gradient[i];
    const double moved = start[i] * (1 - 3e-5) - 3e-4 * g / (std::abs(g) + 1e-8);
    ASSERT_NEAR(state.master[i], moved, 3e-7 * std::max(1.0, std::abs(moved))) << i << " gradient " << g;
  }
}

TEST(AdamW, EmptyIsFineAndWrongLengthsAreNot) {
  State empty(0);
  EXPECT_NO_THROW(empty.update({}));
  std::vector<float> two(2), one(1);
  EXPECT_THROW(adamw_update(two, two, one, two, {}), InternalError);
  EXPECT_THROW(adamw_update(one, one, one, one, {.step = 0}), InternalError);
}

}  // namespace
}  // namespace headrace::kernel
