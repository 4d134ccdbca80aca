#include "headrace/kernel/softmax_loss.h"

#include <cmath>
#include <limits>
#include <string>

#include "headrace/base/errors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/softmax_loss.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After highway.h: it holds code for the target at hand.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;

// exp that keeps NaN, which Highway's does not.
template <class V>
HWY_INLINE V exp_of(V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Tag(), x));
}

float max_of(const float* x, size_t count) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  auto top = hn::Set(d, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) top = hn::Max(top, hn::LoadU(d, x + i));
  float result = hn::GetLane(hn::MaxOfLanes(d, top));
  for (; i < count; ++i) result = HWY_MAX(result, x[i]);
  return result;
}

// Elements whose exponentials are added in fp32 before they join the sum in double.
constexpr size_t kChunk = 1024;

// Sum of exp(x - top); with kStore the exponentials replace x.
template <bool kStore, class Float>
double exp_sum(Float* x, size_t count, float top) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const auto shift = hn::Set(d, top);
  double sum = 0;
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const size_t end = HWY_MIN(begin + kChunk, count);
    auto partial = hn::Zero(d);
    size_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      const auto e = exp_of(hn::Sub(hn::LoadU(d, x + i), shift));
      if constexpr (kStore) hn::StoreU(e, d, x + i);
      partial = hn::Add(partial, e);
    }
    sum += hn::GetLane(hn::SumOfLanes(d, partial));
    for (; i < end; ++i) {
      const float e = hn::GetLane(exp_of(hn::Set(d, x[i] - top)));
      if constexpr (kStore) x[i] = e;
      sum += e;
    }
  }
  return sum;
}

double loss_row(const float* x, size_t count, size_t target) {
  const float top = max_of(x, count);
  return std::log(exp_sum<false>(x, count, top)) - (static_cast<double>(x[target]) - top);
}

double loss_backward_row(float* x, size_t count, size_t target, float scale) {
  const float top = max_of(x, count);
  const double distance = static_cast<double>(x[target]) - top;
  const double sum = exp_sum<true>(x, count, top);
  const auto factor = static_cast<float>(scale / sum);
  const float at_target = x[target];
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  for (; i < count; ++i) x[i] *= factor;
  x[target] = static_cast<float>(scale * (at_target / sum - 1));
  return std::log(sum) - distance;
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(loss_row);
HWY_EXPORT(loss_backward_row);

void expect_index(size_t target, size_t count) {
  if (target < count) return;
  throw InternalError("kernel.cross_entropy",
                      "target " + std::to_string(target) + " is not one of " + std::to_string(count) + " logits.");
}

}  // namespace

double cross_entropy(std::span<const float> logits, size_t target) {
  expect_index(target, logits.size());
  return HWY_DYNAMIC_DISPATCH(loss_row)(logits.data(), logits.size(), target);
}

double cross_entropy_backward(std::span<float> logits, size_t target, float scale) {
  expect_index(target, logits.size());
  return HWY_DYNAMIC_DISPATCH(loss_backward_row)(logits.data(), logits.size(), target, scale);
}

}  // namespace headrace::kernel
#endif
