#include "headrace/kernel/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "headrace/base/errors.h"

namespace headrace::kernel {
namespace {

using Values = std::vector<float>;

// From deep saturation to saturation, unevenly, with a length that leaves a rest.
Values grid() {
  Values values;
  for (int i = -400; i <= 402; ++i) values.push_back(0.25f * static_cast<float>(i) * (i % 3 == 0 ? 0.1f : 1.0f));
  return values;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void expect_close(float value, double expected, float at) {
  EXPECT_NEAR(value, expected, 1e-6 * std::abs(expected) + 1e-6) << "at " << at;
}

TEST(Swiglu, ForwardAndBackwardAgreeWithDoublePrecision) {
  const Values gate = grid();
  Values up(gate.size()), grad(gate.size()), y(gate.size());
  for (size_t i = 0; i < gate.size(); ++i) {
    up[i] = 0.5f - 0.01f * static_cast<float>(i % 90);
    grad[i] = 0.3f + 0.02f * static_cast<float>(i % 7);
  }
  swiglu(gate, up, y);
  Values grad_gate = gate, grad_up = up, again = grad;
  swiglu_backward(grad_gate, grad_up, again);
  EXPECT_EQ(again, y);
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i], s = sigmoid(g);
    expect_close(y[i], g * s * up[i], gate[i]);
    expect_close(grad_up[i], grad[i] * g * s, gate[i]);
    expect_close(grad_gate[i], double{grad[i]} * up[i] * s * (1 + g * (1 - s)), gate[i]);
  }
}

TEST(GeluTanh, ForwardAndBackwardAgreeWithDoublePrecision) {
  const Values x = grid();
  Values y(x.size()), slope = x, again(x.size(), 1.0f);
  gelu_tanh(x, y);
  gelu_tanh_backward(slope, again);
  EXPECT_EQ(again, y);
  const double a = std::sqrt(2 / std::acos(-1.0));
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], t = std::tanh(a * (v + 0.044715 * v * v * v));
    expect_close(y[i], v / 2 * (1 + t), x[i]);
    expect_close(slope[i], (1 + t) / 2 + v / 2 * (1 - t * t) * a * (1 + 3 * 0.044715 * v * v), x[i]);
  }
}

TEST(Activations, ExtremesStayFiniteAndNanShows) {
  const float big = 1e30f, nan = std::numeric_limits<float>::quiet_NaN();
  Values x = {big, -big, nan}, grad = {1, 1, 1}, up = {1, 1, 1}, gate = x;
  gelu_tanh_backward(x, grad);
  EXPECT_EQ(x[0], 1);
  EXPECT_NEAR(x[1], 0, 1e-30);
  EXPECT_TRUE(std::isnan(x[2]));
  Values grad_y = {1, 1, 1};
  swiglu_backward(gate, up, grad_y);
  EXPECT_EQ(grad_y[0], big);
  EXPECT_NEAR(grad_y[1], 0, 1e-6);
  EXPECT_TRUE(std::isnan(grad_y[2]));
}

TEST(Activations, SplittingChangesNoBit) {
  const Values x = grid();
  Values whole(x.size()), split(x.size());
  gelu_tanh(x, whole);
  for (size_t begin = 0; begin < x.size(); begin += 5) {
    const size_t count = std::min<size_t>(5, x.size() - begin);
    gelu_tanh(std::span(x).subspan(begin, count), std::span(split).subspan(begin, count));
  }
  EXPECT_EQ(whole, split);
}

TEST(Activations, WrongLengthsAreOurBug) {
  Values two(2), three(3);
  EXPECT_THROW(swiglu(two, two, three), InternalError);
  EXPECT_THROW(gelu_tanh_backward(two, three), InternalError);
}

}  // namespace
}  // namespace headrace::kernel
