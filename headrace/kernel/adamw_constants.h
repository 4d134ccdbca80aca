// What an AdamW step is made of once it is rounded to fp32: shared by the host's and the device's kernel, so that both
// compute the same bits. Pure; any thread.
#pragma once

#include "headrace/kernel/adamw.h"

namespace headrace::kernel {

struct AdamWConstants {
  float keep;  // 1 - lr * wd
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float step_size;          // lr / (1 - beta1^t)
  float second_correction;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float gradient_scale;
};

// Computed in double, each rounded once. step.step >= 1.
AdamWConstants constants_of(const AdamWStep& step);

}  // namespace headrace::kernel
