#include "headrace/kernel/rotary.h"

#include <string>

#include "headrace/base/errors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/rotary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void rotate_at(D d, float* a, float* b, const float* cos, const float* sin, bool backward) {
  const auto va = hn::LoadU(d, a), vb = hn::LoadU(d, b), c = hn::LoadU(d, cos);
  const auto s = backward ? hn::Neg(hn::LoadU(d, sin)) : hn::LoadU(d, sin);
  hn::StoreU(hn::Sub(hn::Mul(va, c), hn::Mul(vb, s)), d, a);
  hn::StoreU(hn::Add(hn::Mul(vb, c), hn::Mul(va, s)), d, b);
}

void rotate_rows(const HeadRows& heads, size_t half, const float* cos, const float* sin, bool backward) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t row = 0; row < heads.rows; ++row, cos += half, sin += half) {
    float* a = heads.data + row * heads.row_stride;
    for (size_t head = 0; head < heads.num_heads; ++head, a += 2 * half) {
      size_t r = 0;
      for (; r + lanes <= half; r += lanes) rotate_at(d, a + r, a + half + r, cos + r, sin + r, backward);
      for (; r < half; ++r) rotate_at(hn::CappedTag<float, 1>(), a + r, a + half + r, cos + r, sin + r, backward);
    }
  }
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {
HWY_EXPORT(rotate_rows);
}

void rotate(const HeadRows& heads, size_t half, std::span<const float> cos_NR, std::span<const float> sin_NR,
            bool backward) {
  const size_t expected = heads.rows * half;
  if (cos_NR.size() != expected || sin_NR.size() != expected || heads.row_stride < heads.num_heads * 2 * half) {
    throw InternalError("kernel.rotate", "cos and sin hold " + std::to_string(cos_NR.size()) + " and " +
                                             std::to_string(sin_NR.size()) + " numbers, not " +
                                             std::to_string(expected) + "; row stride " +
                                             std::to_string(heads.row_stride) + ".");
  }
  HWY_DYNAMIC_DISPATCH(rotate_rows)(heads, half, cos_NR.data(), sin_NR.data(), backward);
}

}  // namespace headrace::kernel
#endif
