// AdamW with its master and gradient in bf16: the same fp32 master, bit for bit, whatever holds it.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"
#include "headrace/kernel/adamw.h"
#include "tests/kernel/every_target.h"

namespace headrace::kernel {
namespace {

#if HWY_ARCH_X86
// Compiled for AVX-512 even where it cannot run.
static_assert((HWY_TARGETS & HWY_AVX3) != 0 && (HWY_TARGETS & HWY_AVX2) != 0);
#endif

enum class Kind { plain, rounded, split };
constexpr Kind kKinds[] = {Kind::plain, Kind::rounded, Kind::split};

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

struct State {
  State(Kind kind_, std::vector<float> start, bool has_bf16_gradient_ = false)
      : kind(kind_),
        has_bf16_gradient(has_bf16_gradient_),
        master(std::move(start)),
        m(master.size()),
        v(master.size()),
        gradient(master.size()),
        narrow_gradient(master.size()),
        weight(master.size()),
        lower(master.size()) {
    if (kind == Kind::split) split(master, weight, lower);
  }

  void set_gradient(const std::vector<float>& values) {
    to_bf16(values, narrow_gradient);
    for (size_t i = 0; i < values.size(); ++i) {
      gradient[i] = has_bf16_gradient ? to_float(narrow_gradient[i]) : values[i];
    }
  }

  void update(const AdamWStep& step, size_t begin, size_t end) {
    const auto part = [&](auto& values) { return std::span(values).subspan(begin, end - begin); };
    Gradient in = std::span<const float>(part(gradient));
    if (has_bf16_gradient) in = std::span<const Bf16>(part(narrow_gradient));
    if (kind == Kind::plain) adamw_update(part(master), part(m), part(v), in, step);
    if (kind == Kind::rounded) adamw_update(RoundedMaster{part(master), part(weight)}, part(m), part(v), in, step);
    if (kind == Kind::split) adamw_update(SplitMaster{part(weight), part(lower)}, part(m), part(v), in, step);
  }
  void update(const AdamWStep& step) { update(step, 0, m.size()); }

  std::vector<float> whole_master() const {
    std::vector<float> whole = master;
    if (kind == Kind::split) join(weight, lower, whole);
    return whole;
  }

  Kind kind;
  bool has_bf16_gradient;
  std::vector<float> master, m, v, gradient;
  std::vector<Bf16> narrow_gradient, weight;
  std::vector<int16_t> lower;
};

std::vector<float> random_values(size_t count, uint64_t seed) {
  std::vector<float> values(count);
  Rng rng(seed);
  for (float& x : values) x = static_cast<float>(rng.normal() * std::exp(8 * (rng.uniform() - 0.5)));
  return values;
}

bool same_state(const State& a, const State& b) {
  return same_bytes(a.whole_master(), b.whole_master()) && same_bytes(a.m, b.m) && same_bytes(a.v, b.v);
}

TEST(AdamWStorage, TheMasterIsTheSameHoweverItIsStored) {
  constexpr size_t kCount = 5003;
  for (const bool is_bf16 : {false, true}) {
    const std::vector<float> start = random_values(kCount, 1);
    State plain(Kind::plain, start, is_bf16), rounded(Kind::rounded, start, is_bf16),
        split(Kind::split, start, is_bf16);
    for (int64_t t = 1; t <= 100; ++t) {
      const AdamWStep step{.learning_rate = 1e-2, .weight_decay = 0.1, .step = t, .gradient_scale = 0.37f};
      for (State* state : {&plain, &rounded, &split}) {
        state->set_gradient(random_values(kCount, static_cast<uint64_t>(100 + t)));
        state->update(step);
      }
      ASSERT_TRUE(same_state(plain, rounded) && same_state(plain, split)) << "step " << t << ", bf16 " << is_bf16;
    }
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(rounded.weight[i], to_bf16(plain.master[i])) << i;
      ASSERT_EQ(split.weight[i], headrace::kernel::split(plain.master[i]).upper) << i;
    }
  }
}

// A bf16 gradient gives what the same numbers in fp32 give.
TEST(AdamWStorage, ABf16GradientIsReadExactly) {
  const std::vector<float> start = random_values(1003, 1);
  State narrow(Kind::plain, start, true), wide(Kind::plain, start, false);
  narrow.set_gradient(random_values(1003, 2));
  wide.set_gradient(narrow.gradient);
  narrow.update({.weight_decay = 0.1});
  wide.update({.weight_decay = 0.1});
  EXPECT_TRUE(same_state(narrow, wide));
}

// Case "chunks": 1,000,003 elements whole, in 2, 7 and 1000 chunks, on 1 and 2 threads. Odd chunks begin off any line.
TEST(AdamWStorage, ChunksAndThreadsDoNotChangeOneBit) {
  constexpr size_t kCount = 1'000'003;
  const std::vector<float> start = random_values(kCount, 1), gradient = random_values(kCount, 2);
  const AdamWStep step{.weight_decay = 0.1, .step = 3, .gradient_scale = 0.37f};
  for (const Kind kind : {Kind::rounded, Kind::split}) {
    State whole(kind, start, true);
    whole.set_gradient(gradient);
    whole.update(step);
    for (const size_t chunks : {2u, 7u, 1000u}) {
      State parts(kind, start, true);
      parts.set_gradient(gradient);
      const auto work = [&](size_t first, size_t stride) {
        for (size_t c = first; c < chunks; c += stride) {
          parts.update(step, kCount * c / chunks, kCount * (c + 1) / chunks);
        }
      };
      {
        const std::jthread other(work, 1, 2);
        work(0, 2);
      }
      EXPECT_TRUE(same_state(whole, parts) && whole.weight == parts.weight) << chunks << " chunks";
    }
  }
}

// Case "bf16 without AVX-512", and every other instruction set: the same bits, rests and what is not finite included.
TEST(AdamWStorage, EveryInstructionSetGivesTheSameBits) {
  std::vector<float> start = random_values(1003, 1), gradient = random_values(1003, 2);
  const float infinity = std::numeric_limits<float>::infinity();
  start[5] = infinity, start[40] = -infinity, start[77] = 1e-40f, gradient[9] = infinity, gradient[1000] = -infinity;
  for (const Kind kind : kKinds) {
    for (const bool is_bf16 : {false, true}) {
      State best(kind, start, is_bf16);
      best.set_gradient(gradient);
      best.update({.weight_decay = 0.1});
      for_every_target([&] {
        State state(kind, start, is_bf16);
        state.set_gradient(gradient);
        state.update({.weight_decay = 0.1});
        EXPECT_TRUE(same_state(best, state) && best.weight == state.weight);
      });
    }
  }
}

// Payloads that rounding would carry over into another number: on every path a NaN is seen in the travelling weight.
TEST(AdamWStorage, ANanShowsInTheWeight) {
  for (const Kind kind : {Kind::rounded, Kind::split}) {
    State state(kind, std::vector<float>(75, 1.0f));
    for (size_t i = 0; i < 75; i += 2) state.gradient[i] = std::bit_cast<float>(i % 4 == 0 ? 0x7fffffffu : 0xffffffffu);
    state.update({});
    for (size_t i = 0; i < 75; ++i) EXPECT_EQ(std::isnan(to_float(state.weight[i])), i % 2 == 0) << i;
  }
}

// Case "write-back": two parameters of 1 Mi in one buffer, value 1, gradient 1, lr .01, 2 steps.
TEST(AdamWStorage, WeightsAreWrittenBackInTheirPlace) {
  constexpr size_t kEach = size_t{1} << 20;
  for (const Kind kind : {Kind::rounded, Kind::split}) {
    State state(kind, std::vector<float>(2 * kEach, 1.0f), true);
    state.set_gradient(std::vector<float>(2 * kEach, 1.0f));
    for (int64_t t = 1; t <= 2; ++t) {
      for (const size_t begin : {size_t{0}, kEach})
        state.update({.learning_rate = 0.01, .step = t}, begin, begin + kEach);
    }
    const std::vector<float> master = state.whole_master();
    for (size_t i = 0; i < 2 * kEach; ++i) {
      ASSERT_NEAR(master[i], 0.98f, 1e-6) << i;
      ASSERT_EQ(state.weight[i], to_bf16(master[i])) << i;  // 0.98 is no tie, so both roundings agree
    }
  }
}

// Nothing outside the spans is touched: one element on either side of every length and offset.
TEST(AdamWStorage, NeighboursAreLeftAlone) {
  for (const Kind kind : {Kind::rounded, Kind::split}) {
    for (size_t begin = 1; begin < 40; begin += 3) {
      for (const size_t length : {0u, 1u, 15u, 31u, 32u, 33u, 100u}) {
        State state(kind, std::vector<float>(160, 2.0f), true);
        const State before = state;
        state.set_gradient(std::vector<float>(160, 1.0f));
        state.update({}, begin, begin + length);
        for (size_t i = 0; i < 160; ++i) {
          const bool is_inside = i >= begin && i < begin + length;
          ASSERT_EQ(state.whole_master()[i] != 2.0f, is_inside) << i;
          ASSERT_EQ(state.v[i] != 0, is_inside) << i;
          ASSERT_TRUE(is_inside || state.weight[i] == before.weight[i]) << i;
        }
      }
    }
  }
}

// Case "stagnation": 100 updates of 6e-4 move p from 1 to 0.94, its bf16 copy to 0.94140625.
TEST(AdamWStorage, SmallUpdatesAddUp) {
  for (const Kind kind : {Kind::rounded, Kind::split}) {
    State state(kind, {1.0f});
    state.gradient[0] = 1;
    for (int64_t t = 1; t <= 100; ++t) state.update({.learning_rate = 6e-4, .step = t});
    EXPECT_NEAR(state.whole_master()[0], 0.94, 1e-5);
    EXPECT_EQ(to_float(state.weight[0]), 0.94140625f);
  }
}

TEST(AdamWStorage, WrongLengthsAreOurBug) {
  std::vector<float> two(2);
  std::vector<Bf16> one(1), halves(2);
  std::vector<int16_t> lower(2), short_lower(1);
  EXPECT_THROW(adamw_update(two, two, two, std::span<const Bf16>(one), {}), InternalError);
  EXPECT_THROW(adamw_update(RoundedMaster{two, one}, two, two, two, {}), InternalError);
  EXPECT_THROW(adamw_update(SplitMaster{halves, short_lower}, two, two, two, {}), InternalError);
  EXPECT_THROW(adamw_update(SplitMaster{halves, lower}, two, two, two, {.step = 0}), InternalError);
}

}  // namespace
}  // namespace headrace::kernel
