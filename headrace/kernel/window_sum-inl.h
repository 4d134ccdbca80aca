// The gradient of a window's steps, summed as AdamW's pass reads it, for the instruction set being compiled: included
// once for each, by adamw_channels.cpp.
#include "headrace/kernel/adamw_storage.h"

// Highway's guard for headers compiled once a target.
#if defined(HEADRACE_KERNEL_WINDOW_SUM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNEL_WINDOW_SUM_INL
#undef HEADRACE_KERNEL_WINDOW_SUM_INL
#else
#define HEADRACE_KERNEL_WINDOW_SUM_INL
#endif

#include <hwy/highway.h>

#include "headrace/kernel/adamw_pass-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls use(gradient) with the slot's gradient from element `first` on, times its clip factor.
template <class Use>
HWY_INLINE auto with_scaled(const SlotPointers& slot, size_t first, const Use& use) {
  const auto [fp32, bf16] = slot.gradient;
  if (fp32 != nullptr) return use(Scaled<Fp32Gradient>{{fp32 + first}, slot.scale});
  return use(Scaled<Bf16Gradient>{{bf16 + first}, slot.scale});
}

template <class D>
HWY_INLINE hn::Vec<D> load_scaled(D d, const SlotPointers& slot, size_t i) {
  return with_scaled(slot, i, [&](const auto& gradient) { return gradient.load(d, 0); });
}

// Calls body(tag, i) for the whole vectors of a block.
template <class Body>
HWY_INLINE void for_block(const Body& body) {
  const hn::CappedTag<float, kMaxLanes> d;
  for (size_t i = 0; i < kBlock; i += hn::Lanes(d)) body(d, i);
}

// The gradient of one block, which begins at element `begin`.
struct SummedBlock {
  HWY_ALIGN float sums[kBlock];
  size_t begin;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, size_t i) const {
    return hn::Load(d, sums + (i - begin));
  }
  template <class In>
  HWY_INLINE void add(const In& gradient, bool is_first) {
    gradient.prefetch(0);
    if (is_first) return for_block([&](auto d, size_t i) { hn::Store(gradient.load(d, i), d, sums + i); });
    for_block([&](auto d, size_t i) { hn::Store(hn::Add(hn::Load(d, sums + i), gradient.load(d, i)), d, sums + i); });
  }
  HWY_INLINE void scale(float by) {
    for_block([&](auto d, size_t i) { hn::Store(hn::Mul(hn::Load(d, sums + i), hn::Set(d, by)), d, sums + i); });
  }
};

// The gradient of a window of several slots: a block of it at a time, slot after slot.
struct WindowSum {
  std::span<const SlotPointers> slots;
  float mean_scale;
  size_t first;  // where element 0 is in each slot

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, size_t i) const {
    auto sum = load_scaled(d, slots[0], first + i);
    for (const SlotPointers& slot : slots.subspan(1)) sum = hn::Add(sum, load_scaled(d, slot, first + i));
    return hn::Mul(sum, hn::Set(d, mean_scale));
  }
  HWY_INLINE SummedBlock block(size_t i) const {
    SummedBlock block;
    block.begin = i;
    for (const SlotPointers& slot : slots) {
      with_scaled(slot, first + i, [&](const auto& gradient) { block.add(gradient, &slot == &slots[0]); });
    }
    block.scale(mean_scale);
    return block;
  }
  HWY_INLINE void prefetch(size_t) const {}  // a block's sum does
};

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
