#include "headrace/kernel/adamw.h"

#include <string>

#include "headrace/base/errors.h"
#include "headrace/kernel/adamw_constants.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/adamw.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE void update(D d, V& master, V& m, V& v, V gradient, const AdamWConstants& c) {
  gradient = hn::Mul(gradient, hn::Set(d, c.gradient_scale));
  m = hn::Add(hn::Mul(m, hn::Set(d, c.beta1)), hn::Mul(gradient, hn::Set(d, c.one_minus_beta1)));
  v = hn::Add(hn::Mul(v, hn::Set(d, c.beta2)), hn::Mul(hn::Mul(gradient, gradient), hn::Set(d, c.one_minus_beta2)));
  const V denominator = hn::Add(hn::Mul(hn::Sqrt(v), hn::Set(d, c.second_correction)), hn::Set(d, c.epsilon));
  master = hn::Sub(hn::Mul(master, hn::Set(d, c.keep)), hn::Div(hn::Mul(m, hn::Set(d, c.step_size)), denominator));
}

void adamw_span(float* HWY_RESTRICT master, float* HWY_RESTRICT m, float* HWY_RESTRICT v,
                const float* HWY_RESTRICT gradient, size_t count, const AdamWConstants& c) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto master_i = hn::LoadU(d, master + i), m_i = hn::LoadU(d, m + i), v_i = hn::LoadU(d, v + i);
    update(d, master_i, m_i, v_i, hn::LoadU(d, gradient + i), c);
    hn::StoreU(master_i, d, master + i);
    hn::StoreU(m_i, d, m + i);
    hn::StoreU(v_i, d, v + i);
  }
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) {
    auto master_i = hn::LoadU(one, master + i), m_i = hn::LoadU(one, m + i), v_i = hn::LoadU(one, v + i);
    update(one, master_i, m_i, v_i, hn::LoadU(one, gradient + i), c);
    hn::StoreU(master_i, one, master + i);
    hn::StoreU(m_i, one, m + i);
    hn::StoreU(v_i, one, v + i);
  }
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(adamw_span);

}  // namespace

void adamw_update(std::span<float> master, std::span<float> m, std::span<float> v, std::span<const float> gradient,
                  const AdamWStep& step) {
  if (m.size() != master.size() || v.size() != master.size() || gradient.size() != master.size() || step.step < 1) {
    throw InternalError("kernel.adamw", "lengths " + std::to_string(master.size()) + ", " + std::to_string(m.size()) +
                                            ", " + std::to_string(v.size()) + ", " + std::to_string(gradient.size()) +
                                            " must agree and step " + std::to_string(step.step) + " be at least 1.");
  }
  HWY_DYNAMIC_DISPATCH(adamw_span)
  (master.data(), m.data(), v.data(), gradient.data(), master.size(), constants_of(step));
}

}  // namespace headrace::kernel
#endif
