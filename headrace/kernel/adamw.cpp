#include "headrace/kernel/adamw.h"

#include <algorithm>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/kernel/adamw_constants.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/adamw.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After highway.h: they hold code for the target at hand.
#include "headrace/kernel/adamw_storage-inl.h"

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

template <class Master, class GradientIn>
struct Pass {
  Master master;
  float* HWY_RESTRICT m;
  float* HWY_RESTRICT v;
  GradientIn gradient;
  const AdamWConstants& constants;

  template <class D, class Store>
  HWY_INLINE void update_at(D d, size_t i, const Store& store) const {
    auto master_i = master.load(d, i), m_i = hn::LoadU(d, m + i), v_i = hn::LoadU(d, v + i);
    update(d, master_i, m_i, v_i, gradient.load(d, i), constants);
    hn::StoreU(m_i, d, m + i);
    hn::StoreU(v_i, d, v + i);
    store(d, master_i, i);
  }

  HWY_INLINE void prefetch(size_t i) const {
    master.prefetch(i);
    prefetch_block(m + i);
    prefetch_block(v + i);
    gradient.prefetch(i);
  }

  // Blocks of whole cache lines between single elements. Nothing but speed depends on where the blocks begin.
  void run(size_t count) const {
    const hn::CappedTag<float, kMaxLanes> d;
    const hn::CappedTag<float, 1> one;
    const auto store = [this](auto tag, auto value, size_t i) { master.store(tag, value, i); };
    size_t i = 0;
    for (const size_t head = std::min(count, master.elements_before_a_line()); i < head; ++i) update_at(one, i, store);
    for (; i + kBlock <= count; i += kBlock) {
      prefetch(i);
      typename Master::Block block;
      const auto store_in_block = [&](auto tag, auto value, size_t at) { block.store(tag, value, master, at, at - i); };
      for (size_t j = 0; j < kBlock; j += hn::Lanes(d)) update_at(d, i + j, store_in_block);
      block.finish(master, i);
    }
    for (; i < count; ++i) update_at(one, i, store);
    master.finish();
  }
};

template <class Master, class GradientIn>
void run(const Master& master, const Moments& moments, const GradientIn& gradient, size_t count,
         const AdamWConstants& c) {
  Pass<Master, GradientIn>{master, moments.m, moments.v, gradient, c}.run(count);
}

template <class Master>
void run_with(const Master& master, const Moments& moments, const GradientPointers& gradient, size_t count,
              const AdamWConstants& c) {
  if (gradient.fp32 != nullptr) return run(master, moments, Fp32Gradient{gradient.fp32}, count, c);
  run(master, moments, Bf16Gradient{gradient.bf16}, count, c);
}

void adamw_plain(const MasterPointers& p, const Moments& moments, const GradientPointers& gradient, size_t count,
                 const AdamWConstants& c) {
  run_with(Fp32Master{p.fp32}, moments, gradient, count, c);
}

void adamw_rounded(const MasterPointers& p, const Moments& moments, const GradientPointers& gradient, size_t count,
                   const AdamWConstants& c) {
  run_with(Fp32MasterBf16Weight{p.fp32, p.bf16}, moments, gradient, count, c);
}

void adamw_split(const MasterPointers& p, const Moments& moments, const GradientPointers& gradient, size_t count,
                 const AdamWConstants& c) {
  run_with(HalvedMaster{p.bf16, p.lower}, moments, gradient, count, c);
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(adamw_plain);
HWY_EXPORT(adamw_rounded);
HWY_EXPORT(adamw_split);

size_t length(const Gradient& gradient) {
  return std::visit([](const auto& span) { return span.size(); }, gradient);
}

GradientPointers pointers(const Gradient& gradient) {
  if (const auto* fp32 = std::get_if<std::span<const float>>(&gradient)) return {fp32->data(), nullptr};
  return {nullptr, &std::get<std::span<const Bf16>>(gradient).data()->bits};
}

// Whether there is anything to update.
bool check(std::initializer_list<size_t> lengths, int64_t step) {
  const size_t first = *lengths.begin();
  if (step >= 1 && std::all_of(lengths.begin(), lengths.end(), [&](size_t n) { return n == first; })) return first > 0;
  std::string text;
  for (const size_t n : lengths) text += (text.empty() ? "lengths " : ", ") + std::to_string(n);
  throw InternalError("kernel.adamw", text + " must agree and step " + std::to_string(step) + " be at least 1.");
}

}  // namespace

void adamw_update(std::span<float> master, std::span<float> m, std::span<float> v, const Gradient& gradient,
                  const AdamWStep& step) {
  if (!check({master.size(), m.size(), v.size(), length(gradient)}, step.step)) return;
  HWY_DYNAMIC_DISPATCH(adamw_plain)
  ({.fp32 = master.data()}, {m.data(), v.data()}, pointers(gradient), m.size(), constants_of(step));
}

void adamw_update(const RoundedMaster& master, std::span<float> m, std::span<float> v, const Gradient& gradient,
                  const AdamWStep& step) {
  if (!check({master.master.size(), master.weight.size(), m.size(), v.size(), length(gradient)}, step.step)) return;
  HWY_DYNAMIC_DISPATCH(adamw_rounded)
  ({.fp32 = master.master.data(), .bf16 = &master.weight.data()->bits}, {m.data(), v.data()}, pointers(gradient),
   m.size(), constants_of(step));
}

void adamw_update(const SplitMaster& master, std::span<float> m, std::span<float> v, const Gradient& gradient,
                  const AdamWStep& step) {
  if (!check({master.upper.size(), master.lower.size(), m.size(), v.size(), length(gradient)}, step.step)) return;
  HWY_DYNAMIC_DISPATCH(adamw_split)
  ({.bf16 = &master.upper.data()->bits, .lower = master.lower.data()}, {m.data(), v.data()}, pointers(gradient),
   m.size(), constants_of(step));
}

}  // namespace headrace::kernel
#endif
