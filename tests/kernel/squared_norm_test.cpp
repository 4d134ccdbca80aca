#include "headrace/kernel/squared_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "headrace/base/rng.h"

namespace headrace::kernel {
namespace {

TEST(SquaredNorm, IsExactOnSmallIntegers) {
  for (size_t count : {0u, 1u, 15u, 16u, 17u, 1000u, 40000u}) {
    std::vector<float> values(count);
    double expected = 0;
    for (size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(i % 7);
      expected += static_cast<double>(i % 7) * static_cast<double>(i % 7);
    }
    EXPECT_EQ(squared_norm(values), expected) << count;
  }
}

TEST(SquaredNorm, SplittingAtChunksGivesTheSameBits) {
  std::vector<float> values(5 * kNormChunk + 123);
  Rng rng(1);
  for (float& x : values) x = static_cast<float>(rng.normal());
  double parts = 0;
  for (size_t begin = 0; begin < values.size(); begin += kNormChunk) {
    parts += squared_norm(std::span<const float>(values).subspan(begin, std::min(kNormChunk, values.size() - begin)));
  }
  EXPECT_EQ(parts, squared_norm(values));
}

TEST(SquaredNorm, ShowsWhatIsNotFinite) {
  std::vector<float> values(100, 1.0f);
  values[57] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(squared_norm(values)));
  values[99] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(squared_norm(values)));
}

TEST(SquaredNorm, DoesNotOverflow) {
  const std::vector<float> values(4, 1e30f);
  EXPECT_NEAR(squared_norm(values) / 4e60, 1, 1e-6);
}

}  // namespace
}  // namespace headrace::kernel
