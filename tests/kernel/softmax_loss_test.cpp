#include "headrace/kernel/softmax_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"

namespace headrace::kernel {
namespace {

TEST(CrossEntropy, LossAndGradientAgreeWithDoublePrecision) {
  Rng rng(1);
  for (const size_t count : {1u, 7u, 1024u, 1031u, 49152u}) {
    for (const double spread : {0.1, 3.0, 40.0}) {
      std::vector<float> logits(count);
      for (float& x : logits) x = static_cast<float>(spread * rng.normal());
      const size_t target = count / 3;
      double top = logits[0], sum = 0;
      for (const float x : logits) top = std::max<double>(top, x);
      for (const float x : logits) sum += std::exp(x - top);
      const double expected = std::log(sum) + top - logits[target];
      std::vector<float> gradient = logits;
      EXPECT_NEAR(cross_entropy(logits, target), expected, 2e-6 * (1 + expected)) << count << " " << spread;
      EXPECT_EQ(cross_entropy_backward(gradient, target, 0.5f), cross_entropy(logits, target));
      for (size_t i = 0; i < count; ++i) {
        const double p = std::exp(logits[i] - top) / sum;
        ASSERT_NEAR(gradient[i], 0.5 * (p - (i == target ? 1 : 0)), 1e-6) << i;
      }
    }
  }
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  std::vector<float> logits = {1e30f, -1e30f, 1e30f};
  EXPECT_NEAR(cross_entropy(logits, 0), std::log(2.0), 1e-6);
  EXPECT_NEAR(cross_entropy(logits, 1), 2e30, 1e24);
}

TEST(CrossEntropy, WhatIsNotFiniteShows) {
  std::vector<float> logits(100, 0.0f);
  logits[57] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(cross_entropy(logits, 3)));
  logits[57] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(cross_entropy(logits, 3)));
  logits[57] = -std::numeric_limits<float>::infinity();  // a token ruled out is fine
  EXPECT_NEAR(cross_entropy(logits, 3), std::log(99.0), 1e-6);
}

TEST(CrossEntropy, TargetOutsideIsOurBug) {
  std::vector<float> logits(4);
  EXPECT_THROW(cross_entropy(logits, 4), InternalError);
}

}  // namespace
}  // namespace headrace::kernel
