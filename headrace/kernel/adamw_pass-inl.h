// The arithmetic of AdamW and the one pass that applies it, for the instruction set being compiled: included once for
// each, by adamw.cpp and adamw_channels.cpp. Master and gradient are as in adamw_storage-inl.h.
#include "headrace/kernel/adamw_constants.h"
#include "headrace/kernel/adamw_storage.h"

// Highway's guard for headers compiled once a target.
#if defined(HEADRACE_KERNEL_ADAMW_PASS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNEL_ADAMW_PASS_INL
#undef HEADRACE_KERNEL_ADAMW_PASS_INL
#else
#define HEADRACE_KERNEL_ADAMW_PASS_INL
#endif

#include <hwy/highway.h>

#include "headrace/kernel/adamw_storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Correction {
  V step_size, second_correction;
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE void update(D d, V& master, V& m, V& v, V gradient, const Correction<V>& own, const AdamWConstants& c) {
  m = hn::Add(hn::Mul(m, hn::Set(d, c.beta1)), hn::Mul(gradient, hn::Set(d, c.one_minus_beta1)));
  v = hn::Add(hn::Mul(v, hn::Set(d, c.beta2)), hn::Mul(hn::Mul(gradient, gradient), hn::Set(d, c.one_minus_beta2)));
  const V denominator = hn::Add(hn::Mul(hn::Sqrt(v), own.second_correction), hn::Set(d, c.epsilon));
  master = hn::Sub(hn::Mul(master, hn::Set(d, c.keep)), hn::Div(hn::Mul(m, own.step_size), denominator));
}

// A gradient with its clip factor. What a pass reads a block from is block(i), which a window's sum makes first.
template <class In>
struct Scaled {
  In in;
  float scale;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, size_t i) const {
    return hn::Mul(in.load(d, i), hn::Set(d, scale));
  }
  HWY_INLINE void prefetch(size_t i) const { in.prefetch(i); }
  HWY_INLINE const Scaled& block(size_t) const { return *this; }
};

// One correction for all. A pass asks for those of the elements after where it stands and moves on, kBlock at most.
struct SameCorrection {
  BiasCorrection value;

  template <class D>
  HWY_INLINE Correction<hn::Vec<D>> after(D d, size_t) const {
    return {hn::Set(d, value.step_size), hn::Set(d, value.second_correction)};
  }
  HWY_INLINE void move_on(size_t) {}
};

template <class Master, class GradientIn, class Corrections>
struct Pass {
  Master master;
  float* HWY_RESTRICT m;
  float* HWY_RESTRICT v;
  GradientIn gradient;
  Corrections corrections;
  const AdamWConstants& constants;

  template <class D, class Load, class Store>
  HWY_INLINE void update_at(D d, size_t i, size_t ahead, hn::Vec<D> gradient_i, const Load& load,
                            const Store& store) const {
    auto master_i = load(d, i), m_i = hn::LoadU(d, m + i), v_i = hn::LoadU(d, v + i);
    update(d, master_i, m_i, v_i, gradient_i, corrections.after(d, ahead), constants);
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

  // Fewer than a block.
  HWY_INLINE void run_singly(size_t begin, size_t end) {
    const hn::CappedTag<float, 1> one;
    const auto load = [this](auto tag, size_t i) { return master.load(tag, i); };
    const auto store = [this](auto tag, auto value, size_t i) { master.store(tag, value, i); };
    for (size_t i = begin; i < end; ++i) update_at(one, i, i - begin, gradient.load(one, i), load, store);
    corrections.move_on(end - begin);
  }

  // Blocks of whole cache lines between single elements. Nothing but speed depends on where the blocks begin.
  void run(size_t count) {
    const hn::CappedTag<float, kMaxLanes> d;
    size_t i = std::min(count, master.elements_before_a_line());
    run_singly(0, i);
    for (; i + kBlock <= count; i += kBlock) {
      prefetch(i);
      const auto& gradients = gradient.block(i);
      typename Master::Block block;
      block.begin(master, i);
      const auto load_from_block = [&](auto tag, size_t at) { return block.load(tag, master, at, at - i); };
      const auto store_in_block = [&](auto tag, auto value, size_t at) { block.store(tag, value, master, at, at - i); };
      for (size_t j = 0; j < kBlock; j += hn::Lanes(d))
        update_at(d, i + j, j, gradients.load(d, i + j), load_from_block, store_in_block);
      block.finish(master, i);
      corrections.move_on(kBlock);
    }
    run_singly(i, count);
    master.finish();
  }
};

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
