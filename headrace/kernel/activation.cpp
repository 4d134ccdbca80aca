#include "headrace/kernel/activation.h"

#include <string>

#include "headrace/base/errors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/activation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After highway.h: it holds code for the target at hand.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(load, store) for whole vectors in place; the rest goes through a padded copy, so that every element takes
// the same path whatever the length of the span.
template <class Body>
HWY_INLINE void for_each(size_t count, const Body& body) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    body([&](const float* p) { return hn::LoadU(d, p + i); }, [&](auto v, float* p) { hn::StoreU(v, d, p + i); });
  }
  if (i == count) return;
  const size_t rest = count - i;
  HWY_ALIGN float padded[HWY_MAX_BYTES / sizeof(float)] = {};
  const auto load = [&](const float* p) {
    for (size_t lane = 0; lane < rest; ++lane) padded[lane] = p[i + lane];
    return hn::Load(d, padded);
  };
  const auto store = [&](auto v, float* p) {
    hn::Store(v, d, padded);
    for (size_t lane = 0; lane < rest; ++lane) p[i + lane] = padded[lane];
  };
  body(load, store);
}

template <class V>
HWY_INLINE V sigmoid(V x) {
  const hn::ScalableTag<float> d;
  // Below -87 the exponential would overflow; there the sigmoid is under 2e-38 all the same.
  const V e = hn::Exp(d, hn::Neg(hn::Max(hn::Set(d, -87.0f), x)));
  return hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), e));
}

void swiglu_span(const float* gate, const float* up, float* y, size_t count) {
  for_each(count, [&](auto load, auto store) {
    const auto g = load(gate);
    store(hn::Mul(hn::Mul(g, sigmoid(g)), load(up)), y);
  });
}

// silu'(g) = s * (1 + g * (1 - s)).
void swiglu_backward_span(float* gate, float* up, float* grad_y, size_t count) {
  const hn::ScalableTag<float> d;
  const auto one = hn::Set(d, 1.0f);
  for_each(count, [&](auto load, auto store) {
    const auto g = load(gate), u = load(up), grad = load(grad_y);
    const auto s = sigmoid(g);
    const auto silu = hn::Mul(g, s);
    const auto slope = hn::Mul(s, hn::Add(one, hn::Mul(g, hn::Sub(one, s))));
    store(hn::Mul(hn::Mul(grad, u), slope), gate);
    store(hn::Mul(grad, silu), up);
    store(hn::Mul(silu, u), grad_y);
  });
}

// (1 + tanh(z)) / 2 = sigmoid(2 z), so gelu = x * sigmoid(x * (a + b x^2)).
constexpr float kGeluLinear = 1.5957691216057308f;  // 2 sqrt(2 / pi)
constexpr float kGeluCubic = 0.07135481627f;        // 0.044715 of it

// Beyond 30 the sigmoid is constant: clamped, no power of x overflows. In this order of arguments NaN stays NaN.
template <class V>
HWY_INLINE V clamp_tails(V x) {
  const hn::ScalableTag<float> d;
  return hn::Min(hn::Set(d, 30.0f), hn::Max(hn::Set(d, -30.0f), x));
}

void gelu_span(const float* x_span, float* y, size_t count) {
  const hn::ScalableTag<float> d;
  for_each(count, [&](auto load, auto store) {
    const auto x = load(x_span), z = clamp_tails(x);
    const auto slope = hn::Add(hn::Set(d, kGeluLinear), hn::Mul(hn::Set(d, kGeluCubic), hn::Mul(z, z)));
    store(hn::Mul(x, sigmoid(hn::Mul(z, slope))), y);
  });
}

void gelu_backward_span(float* x_span, float* grad_y, size_t count) {
  const hn::ScalableTag<float> d;
  const auto one = hn::Set(d, 1.0f);
  for_each(count, [&](auto load, auto store) {
    const auto x = load(x_span), grad = load(grad_y), z = clamp_tails(x);
    const auto square = hn::Mul(z, z);
    const auto slope = hn::Add(hn::Set(d, kGeluLinear), hn::Mul(hn::Set(d, kGeluCubic), square));
    const auto s = sigmoid(hn::Mul(z, slope));
    const auto inner = hn::Add(hn::Set(d, kGeluLinear), hn::Mul(hn::Set(d, 3 * kGeluCubic), square));
    const auto curved = hn::Mul(hn::Mul(z, hn::Mul(s, hn::Sub(one, s))), inner);
    store(hn::Mul(grad, hn::Add(s, curved)), x_span);
    store(hn::Mul(x, s), grad_y);
  });
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(swiglu_span);
HWY_EXPORT(swiglu_backward_span);
HWY_EXPORT(gelu_span);
HWY_EXPORT(gelu_backward_span);

void expect_equal(const char* verb, size_t a, size_t b, size_t c) {
  if (a == b && a == c) return;
  throw InternalError(
      verb, "lengths " + std::to_string(a) + ", " + std::to_string(b) + ", " + std::to_string(c) + " must be equal.");
}

}  // namespace

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  expect_equal("kernel.swiglu", gate.size(), up.size(), y.size());
  HWY_DYNAMIC_DISPATCH(swiglu_span)(gate.data(), up.data(), y.data(), y.size());
}

void swiglu_backward(std::span<float> gate, std::span<float> up, std::span<float> grad_y) {
  expect_equal("kernel.swiglu_backward", gate.size(), up.size(), grad_y.size());
  HWY_DYNAMIC_DISPATCH(swiglu_backward_span)(gate.data(), up.data(), grad_y.data(), grad_y.size());
}

void gelu_tanh(std::span<const float> x, std::span<float> y) {
  expect_equal("kernel.gelu_tanh", x.size(), y.size(), y.size());
  HWY_DYNAMIC_DISPATCH(gelu_span)(x.data(), y.data(), y.size());
}

void gelu_tanh_backward(std::span<float> x, std::span<float> grad_y) {
  expect_equal("kernel.gelu_tanh_backward", x.size(), grad_y.size(), grad_y.size());
  HWY_DYNAMIC_DISPATCH(gelu_backward_span)(x.data(), grad_y.data(), grad_y.size());
}

}  // namespace headrace::kernel
#endif
