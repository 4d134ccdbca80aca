// One fused pass of AdamW over flat fp32 buffers: gradient in; master, m and v in place.
// Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", arXiv 1711.05101, algorithm 2.
// Pure functions of their spans; safe from any thread on disjoint spans. Each element is computed alone, without fused
// multiply-add, so the result does not depend on chunks, threads or the vector width: bitwise equal everywhere.
#pragma once

#include <cstdint>
#include <span>

namespace headrace::kernel {

struct AdamWStep {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;   // decoupled: master *= 1 - learning_rate * weight_decay
  int64_t step = 1;          // >= 1; which update of these elements this is, for the bias correction
  float gradient_scale = 1;  // multiplied into each gradient first: the clip factor
};

// All four spans have one length. Updates every element once. Throws InternalError when lengths differ or step < 1.
void adamw_update(std::span<float> master, std::span<float> m, std::span<float> v, std::span<const float> gradient,
                  const AdamWStep& step);

}  // namespace headrace::kernel
