// The arithmetic of AdamW on the device: every rounding of the host's kernel, in its order. For .cu files only.
#pragma once

#include <cuda_runtime.h>

#include "headrace/kernel/adamw_constants.h"

namespace headrace::kernel::cuda {

// `gradient` is scaled already; `keep` stands in for c.keep.
__device__ inline void update_element(float& master, float& m, float& v, float gradient, float keep,
                                      const AdamWConstants& c, const BiasCorrection& correction) {
  m = __fadd_rn(__fmul_rn(m, c.beta1), __fmul_rn(gradient, c.one_minus_beta1));
  v = __fadd_rn(__fmul_rn(v, c.beta2), __fmul_rn(__fmul_rn(gradient, gradient), c.one_minus_beta2));
  const float denominator = __fadd_rn(__fmul_rn(__fsqrt_rn(v), correction.second_correction), c.epsilon);
  master = __fsub_rn(__fmul_rn(master, keep), __fdiv_rn(__fmul_rn(m, correction.step_size), denominator));
}

}  // namespace headrace::kernel::cuda
