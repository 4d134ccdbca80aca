// How AdamW's numbers lie in memory, for the instruction set being compiled: included once for each, by adamw.cpp.
// A gradient has load and prefetch; a master also stores: element by element, or a block of kBlock at a time, whose
// begin() and finish() may widen and narrow several vectors together.
#include <hwy/cache_control.h>

#include "headrace/kernel/adamw_storage.h"

// Highway's guard for headers compiled once a target.
#if defined(HEADRACE_KERNEL_ADAMW_STORAGE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNEL_ADAMW_STORAGE_INL
#undef HEADRACE_KERNEL_ADAMW_STORAGE_INL
#else
#define HEADRACE_KERNEL_ADAMW_STORAGE_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLineBytes = 64;
constexpr size_t kBlock = kAdamWBlock;
constexpr size_t kMaxLanes = 16;        // a block is a whole number of vectors
constexpr size_t kPrefetchAhead = 512;  // [bytes]

template <class T>
HWY_INLINE void prefetch_block(const T* block) {
  const char* ahead = reinterpret_cast<const char*>(block) + kPrefetchAhead * sizeof(T) / 4;
  for (size_t line = 0; line < kBlock * sizeof(T); line += kLineBytes) hwy::Prefetch(ahead + line);
}

template <class D>
using Words = hn::RebindToUnsigned<D>;
template <class D>
using Halves = hn::Rebind<uint16_t, D>;

// Of words below 2^16.
template <class D>
HWY_INLINE hn::Vec<Halves<D>> narrow(D, hn::Vec<Words<D>> words) {
  return hn::DemoteTo(Halves<D>(), hn::BitCast(hn::RebindToSigned<D>(), words));
}

template <class D>
HWY_INLINE hn::Vec<Words<D>> upper_word(D, const uint16_t* halves) {
  return hn::ShiftLeft<16>(hn::PromoteTo(Words<D>(), hn::LoadU(Halves<D>(), halves)));
}

// to_bf16 of bf16.h.
template <class D>
HWY_INLINE hn::Vec<Halves<D>> rounded(D d, hn::Vec<D> x) {
  const Words<D> w;
  const auto bits = hn::BitCast(w, x), upper = hn::ShiftRight<16>(bits);
  const auto bias = hn::Add(hn::And(upper, hn::Set(w, 1)), hn::Set(w, 0x7fff));
  const auto nearest = hn::ShiftRight<16>(hn::Add(bits, bias));
  const auto quiet = hn::Or(upper, hn::Set(w, 0x40));
  return narrow(d, hn::IfThenElse(hn::RebindMask(w, hn::IsNaN(x)), quiet, nearest));
}

template <class Float>
struct Fp32Values {
  Float* HWY_RESTRICT values;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, size_t i) const {
    return hn::LoadU(d, values + i);
  }
  HWY_INLINE void prefetch(size_t i) const { prefetch_block(values + i); }
};

using Fp32Gradient = Fp32Values<const float>;

struct Bf16Gradient {
  const uint16_t* HWY_RESTRICT values;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, size_t i) const {
    return hn::BitCast(d, upper_word(d, values + i));
  }
  HWY_INLINE void prefetch(size_t i) const { prefetch_block(values + i); }
};

// A block whose elements are loaded and stored as they come.
template <class Master>
struct PlainBlock {
  HWY_INLINE void begin(const Master&, size_t) const {}
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const Master& master, size_t at, size_t) const {
    return master.load(d, at);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, const Master& master, size_t at, size_t) const {
    master.store(d, value, at);
  }
  HWY_INLINE void finish(const Master&, size_t) const {}
};

// A master whose stores all go through the cache.
struct CachedMaster {
  HWY_INLINE size_t elements_before_a_line() const { return 0; }
  HWY_INLINE void finish() const {}
};

struct Fp32Master : Fp32Values<float>, CachedMaster {
  using Block = PlainBlock<Fp32Master>;

  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, size_t i) const {
    hn::StoreU(value, d, values + i);
  }
};

struct HalvedMaster : CachedMaster {
  uint16_t* HWY_RESTRICT upper;
  int16_t* HWY_RESTRICT lower;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, size_t i) const {
    const hn::RebindToSigned<D> s;
    const auto distance = hn::PromoteTo(s, hn::LoadU(hn::Rebind<int16_t, D>(), lower + i));
    return hn::BitCast(d, hn::Add(upper_word(d, upper + i), hn::BitCast(Words<D>(), distance)));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> quieted(D d, hn::Vec<D> value) {
    const auto quiet = hn::BitCast(d, hn::Set(Words<D>(), 0x7fc00000));
    return hn::IfThenElse(hn::IsNaN(value), hn::CopySign(quiet, value), value);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, size_t i) const {
    const Words<D> w;
    value = quieted(d, value);
    const auto bits = hn::BitCast(w, value);
    const auto low = narrow(d, hn::And(bits, hn::Set(w, 0xffff)));
    hn::StoreU(narrow(d, hn::ShiftRight<16>(hn::Add(bits, hn::Set(w, 0x8000)))), Halves<D>(), upper + i);
    hn::StoreU(hn::BitCast(hn::Rebind<int16_t, D>(), low), hn::Rebind<int16_t, D>(), lower + i);
  }
  HWY_INLINE void prefetch(size_t i) const {
    prefetch_block(upper + i);
    prefetch_block(lower + i);
  }

#if HWY_TARGET == HWY_AVX2
  // Joined when it begins, split when it ends: AVX2 takes three instructions to widen or narrow a vector between 16 and
  // 32 bits, and as many for two.
  struct Block {
    static constexpr size_t kPair = 16;
    HWY_ALIGN float values[kBlock];

    HWY_INLINE void begin(const HalvedMaster& master, size_t block) {
      const hn::Full256<int16_t> signed_halves;
      const hn::Full256<uint16_t> halves;
      for (size_t j = 0; j < kBlock; j += kPair) {
        const auto distance = hn::LoadU(signed_halves, master.lower + block + j);
        const auto low = hn::BitCast(halves, distance);
        // A negative distance borrows one.
        const auto borrow = hn::BitCast(halves, hn::ShiftRight<15>(distance));
        const auto high = hn::Add(hn::LoadU(halves, master.upper + block + j), borrow);
        const auto begins = hn::InterleaveLower(halves, low, high), ends = hn::InterleaveUpper(halves, low, high);
        const hn::Full256<float> d;
        hn::Store(hn::BitCast(d, hn::ConcatLowerLower(halves, ends, begins)), d, values + j);
        hn::Store(hn::BitCast(d, hn::ConcatUpperUpper(halves, ends, begins)), d, values + j + kPair / 2);
      }
    }
    template <class D>
    HWY_INLINE hn::Vec<D> load(D d, const HalvedMaster&, size_t, size_t in_block) const {
      return hn::Load(d, values + in_block);
    }
    template <class D>
    HWY_INLINE void store(D d, hn::Vec<D> value, const HalvedMaster&, size_t, size_t in_block) {
      hn::Store(value, d, values + in_block);
    }
    HWY_INLINE void finish(const HalvedMaster& master, size_t block) const {
      const hn::Full256<float> d;
      const hn::Full256<uint32_t> w;
      const hn::Full256<uint16_t> halves;
      const hn::Full256<int16_t> signed_halves;
      const auto half = hn::Set(w, 0x8000);
      for (size_t j = 0; j < kBlock; j += kPair) {
        auto first = hn::Load(d, values + j), second = hn::Load(d, values + j + kPair / 2);
        if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Or(hn::IsNaN(first), hn::IsNaN(second))))) {
          first = quieted(d, first);
          second = quieted(d, second);
        }
        const auto a = hn::BitCast(w, first), b = hn::BitCast(w, second);
        const auto low = hn::ConcatEven(halves, hn::BitCast(halves, b), hn::BitCast(halves, a));
        const auto high =
            hn::ConcatOdd(halves, hn::BitCast(halves, hn::Add(b, half)), hn::BitCast(halves, hn::Add(a, half)));
        hn::StoreU(high, halves, master.upper + block + j);
        hn::StoreU(hn::BitCast(signed_halves, low), signed_halves, master.lower + block + j);
      }
    }
  };
#else
  using Block = PlainBlock<HalvedMaster>;
#endif
};

// The weight is only written: whole lines go past the cache, which saves reading them first.
struct Fp32MasterBf16Weight : Fp32Values<float> {
  uint16_t* HWY_RESTRICT weight;

  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, size_t i, uint16_t* weight_i) const {
    hn::StoreU(value, d, values + i);
    hn::StoreU(rounded(d, value), Halves<D>(), weight_i);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, size_t i) const {
    store(d, value, i, weight + i);
  }
  HWY_INLINE size_t elements_before_a_line() const {
    return (kLineBytes - reinterpret_cast<uintptr_t>(weight) % kLineBytes) % kLineBytes / sizeof(uint16_t);
  }
  // Other threads must see what was streamed.
  HWY_INLINE void finish() const { hwy::FlushStream(); }

  struct Block {
    HWY_ALIGN uint16_t weights[kBlock];

    HWY_INLINE void begin(const Fp32MasterBf16Weight&, size_t) const {}
    template <class D>
    HWY_INLINE hn::Vec<D> load(D d, const Fp32MasterBf16Weight& master, size_t at, size_t) const {
      return master.load(d, at);
    }
    template <class D>
    HWY_INLINE void store(D d, hn::Vec<D> value, const Fp32MasterBf16Weight& master, size_t at, size_t in_block) {
      master.store(d, value, at, weights + in_block);
    }
    HWY_INLINE void finish(const Fp32MasterBf16Weight& master, size_t block) const {
      const hn::CappedTag<uint16_t, 8> d;
      for (size_t j = 0; j < kBlock; j += hn::Lanes(d))
        hn::Stream(hn::Load(d, weights + j), d, master.weight + block + j);
    }
  };
};

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
