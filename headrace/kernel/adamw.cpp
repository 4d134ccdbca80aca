#include "headrace/kernel/adamw.h"

#include <algorithm>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/kernel/adamw_constants.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/adamw.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After highway.h: it holds code for the target at hand.
#include "headrace/kernel/adamw_pass-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Master, class GradientIn>
void run(const Master& master, const Moments& moments, const GradientIn& gradient, size_t count,
         const StepConstants& c) {
  Pass<Master, Scaled<GradientIn>, SameCorrection>{master,         moments.m, moments.v, {gradient, c.gradient_scale},
                                                   {c.correction}, c.adamw}
      .run(count);
}

template <class Master>
void run_with(const Master& master, const Moments& moments, const GradientPointers& gradient, size_t count,
              const StepConstants& c) {
  if (gradient.fp32 != nullptr) return run(master, moments, Fp32Gradient{gradient.fp32}, count, c);
  run(master, moments, Bf16Gradient{gradient.bf16}, count, c);
}

void adamw_plain(const MasterPointers& p, const Moments& moments, const GradientPointers& gradient, size_t count,
                 const StepConstants& c) {
  run_with(Fp32Master{{p.fp32}, {}}, moments, gradient, count, c);
}

void adamw_rounded(const MasterPointers& p, const Moments& moments, const GradientPointers& gradient, size_t count,
                   const StepConstants& c) {
  run_with(Fp32MasterBf16Weight{{p.fp32}, p.bf16}, moments, gradient, count, c);
}

void adamw_split(const MasterPointers& p, const Moments& moments, const GradientPointers& gradient, size_t count,
                 const StepConstants& c) {
  run_with(HalvedMaster{{}, p.bf16, p.lower}, moments, gradient, count, c);
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(adamw_plain);
HWY_EXPORT(adamw_rounded);
HWY_EXPORT(adamw_split);

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
