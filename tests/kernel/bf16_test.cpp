#include "headrace/kernel/bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "headrace/base/errors.h"

namespace headrace::kernel {
namespace {

float of_bits(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

// Around zero, around the tie, around the carry, and every 251st between.
std::vector<uint32_t> sampled_lowers() {
  std::vector<uint32_t> lowers = {0, 1, 2, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0x8002, 0xfffe, 0xffff};
  for (uint32_t lower = 3; lower < 0x10000; lower += 251) lowers.push_back(lower);
  return lowers;
}

TEST(SplitFloat, EveryUpperHalfComesBack) {
  const std::vector<uint32_t> lowers = sampled_lowers();
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower : lowers) {
      const uint32_t bits = upper << 16 | lower;
      const float x = of_bits(bits), back = join(split(x));
      if (std::isnan(x)) {
        ASSERT_EQ(bits_of(back), (bits & 0x80000000u) | 0x7fc00000u) << std::hex << bits;
        ASSERT_TRUE(std::isnan(to_float(split(x).upper))) << std::hex << bits;
      } else {
        ASSERT_EQ(bits_of(back), bits) << std::hex << bits;
      }
    }
  }
}

// The upper half alone is the nearest bf16; a tie goes to the larger magnitude.
TEST(SplitFloat, TheUpperHalfIsTheNearest) {
  for (uint32_t upper = 0; upper < 0x7f80; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu}) {
      const uint32_t expected = upper + (lower >= 0x8000 ? 1 : 0);
      ASSERT_EQ(split(of_bits(upper << 16 | lower)).upper.bits, expected);
      ASSERT_EQ(split(of_bits(0x80000000u | upper << 16 | lower)).upper.bits, 0x8000 | expected);
    }
  }
}

TEST(Bf16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(to_bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(to_bf16(of_bits(0x3f808000)).bits, 0x3f80);
  EXPECT_EQ(to_bf16(of_bits(0x3f808001)).bits, 0x3f81);
  EXPECT_EQ(to_bf16(of_bits(0x3f818000)).bits, 0x3f82);
  EXPECT_EQ(to_bf16(of_bits(0x00008001)).bits, 0x0001);  // a denormal
  EXPECT_EQ(to_bf16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
  for (const uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(to_float(to_bf16(of_bits(nan))))) << std::hex << nan;
  }
}

TEST(Bf16, IsTheNearestOfItsNeighbours) {
  for (uint32_t upper = 0; upper < 0x7f7f; upper += 7) {
    for (const uint32_t lower : sampled_lowers()) {
      const double x = of_bits(upper << 16 | lower), below = to_float({static_cast<uint16_t>(upper)});
      const double above = to_float({static_cast<uint16_t>(upper + 1)}), got = to_float(to_bf16(static_cast<float>(x)));
      ASSERT_EQ(std::abs(got - x), std::min(x - below, above - x)) << std::hex << (upper << 16 | lower);
    }
  }
}

TEST(Bf16, SpansAgreeWithSingleNumbers) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0xfff00000u; bits += 0xabcdef) values.push_back(of_bits(bits));
  std::vector<Bf16> upper(values.size()), nearest(values.size());
  std::vector<int16_t> lower(values.size());
  std::vector<float> back(values.size());
  split(values, upper, lower);
  join(upper, lower, back);
  to_bf16(values, nearest);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(upper[i], split(values[i]).upper);
    EXPECT_EQ(bits_of(back[i]), bits_of(join(split(values[i]))));
    EXPECT_EQ(nearest[i], to_bf16(values[i]));
  }
  upper.pop_back();
  EXPECT_THROW(split(values, upper, lower), InternalError);
  EXPECT_THROW(join(upper, lower, back), InternalError);
  EXPECT_THROW(to_bf16(values, upper), InternalError);
}

}  // namespace
}  // namespace headrace::kernel
