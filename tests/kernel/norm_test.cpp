#include "headrace/kernel/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"

namespace headrace::kernel {
namespace {

using Values = std::vector<float>;

Values random_values(size_t count, uint64_t seed) {
  Values values(count);
  Rng rng(seed);
  for (float& x : values) x = static_cast<float>(rng.normal());
  return values;
}

// Rows of 37 channels leave a rest on every instruction set.
constexpr size_t kRows = 70, kChannels = 37;
constexpr float kEpsilon = 1e-5f;

struct Reference {
  double mean = 0, inverse = 0;
};

Reference moments(const float* x, bool centred) {
  Reference r;
  for (size_t c = 0; c < kChannels && centred; ++c) r.mean += x[c] / double{kChannels};
  double squares = 0;
  for (size_t c = 0; c < kChannels; ++c) squares += (x[c] - r.mean) * (x[c] - r.mean);
  r.inverse = 1 / std::sqrt(squares / kChannels + kEpsilon);
  return r;
}

// Gradient of sum(grad_y * norm(x)) in double, from the definition: normalised n = (x - mean) * inverse.
std::vector<double> reference_gradient(const float* grad_y, const float* x, const Values& weight, bool centred) {
  const Reference r = moments(x, centred);
  double mean_u = 0, mean_un = 0;
  for (size_t c = 0; c < kChannels; ++c) {
    const double u = double{grad_y[c]} * weight[c];
    mean_u += centred ? u / kChannels : 0;
    mean_un += u * (x[c] - r.mean) * r.inverse / kChannels;
  }
  std::vector<double> gradient(kChannels);
  for (size_t c = 0; c < kChannels; ++c) {
    gradient[c] = r.inverse * (double{grad_y[c]} * weight[c] - mean_u - (x[c] - r.mean) * r.inverse * mean_un);
  }
  return gradient;
}

TEST(RmsNorm, AgreesWithDoublePrecision) {
  const Values x = random_values(kRows * kChannels, 1), weight = random_values(kChannels, 2);
  Values y(x.size()), inverse(kRows), again(x.size());
  rms_norm(x, weight, kEpsilon, y, inverse);
  rms_norm_again(x, weight, inverse, again);
  EXPECT_EQ(y, again);
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = x[i] * moments(&x[i / kChannels * kChannels], false).inverse * weight[i % kChannels];
    ASSERT_NEAR(y[i], expected, 1e-6 * (1 + std::abs(expected))) << i;
  }
}

TEST(RmsNorm, BackwardAddsTheGradient) {
  const Values x = random_values(kRows * kChannels, 1), weight = random_values(kChannels, 2);
  const Values grad_y = random_values(x.size(), 3), start = random_values(x.size(), 4);
  Values y(x.size()), inverse(kRows), grad_x = start;
  rms_norm(x, weight, kEpsilon, y, inverse);
  rms_norm_backward(grad_y, x, weight, inverse, grad_x);
  for (size_t row = 0; row < kRows; ++row) {
    const auto expected = reference_gradient(&grad_y[row * kChannels], &x[row * kChannels], weight, false);
    for (size_t c = 0; c < kChannels; ++c) {
      const size_t i = row * kChannels + c;
      ASSERT_NEAR(grad_x[i] - start[i], expected[c], 3e-6 * (1 + std::abs(expected[c]))) << i;
    }
  }
}

TEST(LayerNorm, AgreesWithDoublePrecision) {
  const Values x = random_values(kRows * kChannels, 1), weight = random_values(kChannels, 2);
  const Values bias = random_values(kChannels, 5), grad_y = random_values(x.size(), 3);
  Values y(x.size()), mean(kRows), inverse(kRows), again(x.size()), grad_x(x.size());
  layer_norm(x, {weight, bias}, kEpsilon, y, {mean, inverse});
  layer_norm_again(x, {weight, bias}, {mean, inverse}, again);
  EXPECT_EQ(y, again);
  layer_norm_backward(grad_y, x, weight, {mean, inverse}, grad_x);
  for (size_t row = 0; row < kRows; ++row) {
    const Reference r = moments(&x[row * kChannels], true);
    const auto gradient = reference_gradient(&grad_y[row * kChannels], &x[row * kChannels], weight, true);
    for (size_t c = 0; c < kChannels; ++c) {
      const size_t i = row * kChannels + c;
      ASSERT_NEAR(y[i], (x[i] - r.mean) * r.inverse * weight[c] + bias[c], 5e-6) << i;
      ASSERT_NEAR(grad_x[i], gradient[c], 3e-6 * (1 + std::abs(gradient[c]))) << i;
    }
  }
}

TEST(LayerNorm, SurvivesALargeMean) {
  Values x = random_values(kRows * kChannels, 1);
  for (float& value : x) value += 1000;
  const Values weight(kChannels, 1), bias(kChannels, 0);
  Values y(x.size()), mean(kRows), inverse(kRows);
  layer_norm(x, {weight, bias}, kEpsilon, y, {mean, inverse});
  for (size_t i = 0; i < x.size(); ++i) {
    const Reference r = moments(&x[i / kChannels * kChannels], true);
    ASSERT_NEAR(y[i], (x[i] - r.mean) * r.inverse, 3e-4) << i;  // an ulp of 1000 is 6e-5
  }
}

TEST(Norms, SplittingTheRowsChangesNoBit) {
  const Values x = random_values(kRows * kChannels, 1), weight = random_values(kChannels, 2);
  Values whole(x.size()), inverse(kRows), split(x.size()), split_inverse(kRows);
  rms_norm(x, weight, kEpsilon, whole, inverse);
  for (size_t begin = 0, end = 0; begin < kRows; begin = end) {
    end = std::min(begin + 13, kRows);
    rms_norm(std::span(x).subspan(begin * kChannels, (end - begin) * kChannels), weight, kEpsilon,
             std::span(split).subspan(begin * kChannels, (end - begin) * kChannels),
             std::span(split_inverse).subspan(begin, end - begin));
  }
  EXPECT_EQ(whole, split);
}

TEST(Norms, ParameterGradientsSumOverRows) {
  constexpr size_t kWide = 200;
  const Values x = random_values(kRows * kWide, 1), grad_y = random_values(x.size(), 2);
  const Values mean = random_values(kRows, 3), inverse = random_values(kRows, 4);
  Values weight(kWide, 0.5f), rms(kWide, 0.5f), sums(kWide, 0.5f), split(kWide, 0.5f);
  add_norm_weight_gradient(grad_y, x, mean, inverse, {0, kWide, kWide}, weight);
  add_norm_weight_gradient(grad_y, x, {}, inverse, {0, kWide, kWide}, rms);
  add_row_sums(x, {0, kWide, kWide}, sums);
  for (size_t c = 0; c < kWide; ++c) {
    double expected = 0.5, expected_rms = 0.5, expected_sum = 0.5;
    for (size_t row = 0; row < kRows; ++row) {
      const size_t i = row * kWide + c;
      expected += double{grad_y[i]} * (double{x[i]} - mean[row]) * inverse[row];
      expected_rms += double{grad_y[i]} * x[i] * inverse[row];
      expected_sum += x[i];
    }
    ASSERT_NEAR(weight[c], expected, 3e-5) << c;
    ASSERT_NEAR(rms[c], expected_rms, 3e-5) << c;
    ASSERT_NEAR(sums[c], expected_sum, 1e-5) << c;
  }
  for (size_t begin = 0; begin < kWide; begin += 64) {
    add_norm_weight_gradient(grad_y, x, mean, inverse, {begin, std::min(begin + 64, kWide), kWide}, split);
  }
  EXPECT_EQ(weight, split);
}

TEST(Norms, WrongLengthsAreOurBug) {
  Values four(4), two(2), three(3);
  EXPECT_THROW(rms_norm(four, three, kEpsilon, four, two), InternalError);
  EXPECT_THROW(rms_norm_backward(four, four, two, two, two), InternalError);
  EXPECT_THROW(layer_norm(four, {two, three}, kEpsilon, four, {two, two}), InternalError);
  EXPECT_THROW(add_row_sums(four, {0, 3, 2}, two), InternalError);
}

}  // namespace
}  // namespace headrace::kernel
