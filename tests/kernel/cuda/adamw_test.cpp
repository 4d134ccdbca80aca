#include "headrace/kernel/cuda/adamw.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/kernel/adamw.h"
#include "tests/kernel/cuda/device_buffer.h"

namespace headrace::kernel {
namespace {

struct State {
  std::vector<float> master, m, v, gradient;
};

State random_state(size_t count) {
  std::mt19937 random(20260101);
  std::normal_distribution<float> normal;
  State state;
  for (auto* values : {&state.master, &state.m, &state.v, &state.gradient}) {
    values->resize(count);
    for (float& value : *values) value = normal(random);
  }
  for (float& value : state.v) value *= value;
  return state;
}

// What the host does for one range after another.
void update_on_host(State& state, std::span<const cuda::DecayRange> ranges, const AdamWStep& step) {
  size_t begin = 0;
  for (const cuda::DecayRange& range : ranges) {
    AdamWStep own = step;
    if (!range.decays) own.weight_decay = 0;
    const size_t length = static_cast<size_t>(range.end) - begin;
    adamw_update(std::span(state.master).subspan(begin, length), std::span(state.m).subspan(begin, length),
                 std::span(state.v).subspan(begin, length), std::span(state.gradient).subspan(begin, length), own);
    begin += length;
  }
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<cuda::DecayRange> ranges_of(int64_t count) {
  // Not at multiples of four: one 16-byte access then spans two ranges. One range is empty.
  return {{count / 3 + 1, true}, {count / 2, false}, {count / 2, true}, {count, true}};
}

class CudaAdamW : public NeedsGpu {};

TEST_F(CudaAdamW, EqualsTheHostBitForBit) {
  for (const int64_t count : {int64_t{6}, int64_t{1023}, int64_t{100'002}, int64_t{100'003}}) {
    State state = random_state(static_cast<size_t>(count));
    const size_t offset = count % 2;  // of the moments: not aligned to 16 bytes
    const DeviceBuffer<float> master(state.master), m(state.m, offset), v(state.v, offset), gradient(state.gradient);
    const cuda::AdamWBuffers buffers{master.data(), m.data(), v.data(), gradient.data(), count};
    const auto ranges = ranges_of(count);
    for (int64_t t = 1; t <= 3; ++t) {
      const AdamWStep step{.learning_rate = 3e-4, .weight_decay = 0.1, .step = t, .gradient_scale = 0.7f};
      cuda::adamw_update(buffers, ranges, step, nullptr);
      update_on_host(state, ranges, step);
    }
    EXPECT_TRUE(same_bytes(master.to_host(), state.master)) << count << " elements";
    EXPECT_TRUE(same_bytes(m.to_host(), state.m)) << count << " elements";
    EXPECT_TRUE(same_bytes(v.to_host(), state.v)) << count << " elements";
  }
}

// The checks come before anything is launched, so they need no GPU.
TEST(CudaAdamWArguments, AreRefusedWhenTheyContradictEachOther) {
  const cuda::AdamWBuffers buffers{.count = 8};
  const AdamWStep step;
  using Ranges = std::vector<cuda::DecayRange>;
  EXPECT_THROW(cuda::adamw_update(buffers, Ranges{}, step, nullptr), InternalError);
  EXPECT_THROW(cuda::adamw_update(buffers, Ranges{{7, true}}, step, nullptr), InternalError);
  EXPECT_THROW(cuda::adamw_update(buffers, Ranges{{5, true}, {4, false}, {8, true}}, step, nullptr), InternalError);
  EXPECT_THROW(cuda::adamw_update(buffers, Ranges(cuda::kMaxDecayRanges + 1, {8, true}), step, nullptr), InternalError);
  EXPECT_THROW(cuda::adamw_update(buffers, Ranges{{8, true}}, {.step = 0}, nullptr), InternalError);
}

TEST(CudaAdamWArguments, NothingToDoNeedsNoDevice) {
  const std::vector<cuda::DecayRange> ranges{{0, true}};
  EXPECT_NO_THROW(cuda::adamw_update({}, ranges, {}, nullptr));
}

}  // namespace
}  // namespace headrace::kernel
