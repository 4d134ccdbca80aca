#include "headrace/optim/clip.h"

#include <gtest/gtest.h>

namespace headrace::optim {
namespace {

// Case "clip over tiers": gradient [3] on one tier, [4] on another, max norm 1.
TEST(ClipFactor, UsesTheNormOfAllParts) {
  const float factor = clip_factor(9.0 + 16.0, 1.0);
  EXPECT_FLOAT_EQ(3 * factor, 0.59999988f);
  EXPECT_FLOAT_EQ(4 * factor, 0.79999984f);
}

TEST(ClipFactor, LeavesSmallGradientsAndZeroMeansOff) {
  EXPECT_EQ(clip_factor(0.25, 1.0), 1.0f);
  EXPECT_EQ(clip_factor(1e12, 0.0), 1.0f);
  EXPECT_EQ(clip_factor(0.0, 1.0), 1.0f);
}

}  // namespace
}  // namespace headrace::optim
