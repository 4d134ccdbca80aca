// What an AdamW step is made of once it is rounded to fp32: shared by the host's and the device's kernels, so that both
// compute the same bits. Pure; any thread.
#pragma once

#include <cstdint>

#include "headrace/kernel/adamw.h"
#include "headrace/kernel/adamw_channels.h"

namespace headrace::kernel {

// Of every element of a call.
struct AdamWConstants {
  float keep;  // 1 - lr * wd
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float epsilon;
};

// Of the elements that have seen as many updates.
struct BiasCorrection {
  float step_size;          // lr / (1 - beta1^t)
  float second_correction;  // 1 / sqrt(1 - beta2^t)
};

struct StepConstants {
  AdamWConstants adamw;
  BiasCorrection correction;
  float gradient_scale;
};

// All computed in double, each rounded once. step.step and update, the t of the correction, >= 1.
StepConstants constants_of(const AdamWStep& step);
AdamWConstants constants_of(const ChannelAdamW& adamw);
BiasCorrection bias_correction(const ChannelAdamW& adamw, int64_t update);

}  // namespace headrace::kernel
