#include "headrace/kernel/squared_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/squared_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sixteen partial sums in double whatever the vector width: the order of additions is the same on every machine.
double norm_chunk(const float* values, size_t count) {
  constexpr size_t kLanes = 16;
  alignas(64) double sums[kLanes] = {};
  const hn::CappedTag<double, kLanes> d;
  const hn::Rebind<float, decltype(d)> f;
  const size_t lanes = hn::Lanes(d);
  const size_t whole = count / kLanes * kLanes;
  for (size_t part = 0; part < kLanes; part += lanes) {
    auto sum = hn::Zero(d);
    for (size_t i = part; i < whole; i += kLanes) {
      const auto x = hn::PromoteTo(d, hn::LoadU(f, values + i));
      sum = hn::Add(sum, hn::Mul(x, x));
    }
    hn::StoreU(sum, d, sums + part);
  }
  for (size_t i = whole; i < count; ++i) sums[i - whole] += static_cast<double>(values[i]) * values[i];
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return sums[0];
}

double norm_span(const float* values, size_t count) {
  double sum = 0;
  for (size_t begin = 0; begin < count; begin += kNormChunk) {
    sum += norm_chunk(values + begin, HWY_MIN(kNormChunk, count - begin));
  }
  return sum;
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {

HWY_EXPORT(norm_span);

double squared_norm(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(norm_span)(values.data(), values.size());
}

}  // namespace headrace::kernel
#endif
