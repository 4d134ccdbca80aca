// One fused pass of AdamW over flat buffers: gradient in; master, m and v in place; a bf16 weight out where one is
// kept. Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", arXiv 1711.05101, algorithm 2. Pure
// functions of their spans; safe from any thread on disjoint spans. Each element is computed alone, in fp32 without
// fused multiply-add, so the result does not depend on chunks, threads or the vector width: bitwise equal everywhere.
// The master is the same, bit for bit, however it is stored.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "headrace/kernel/bf16.h"

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

// A gradient as it arrives: fp32, or bf16 read as fp32.
using Gradient = std::variant<std::span<const float>, std::span<const Bf16>>;

// An fp32 master whose weight travels as bf16: `weight` is written, never read, and is the master's nearest bf16, ties
// to even. 14 bytes a parameter with m and v.
struct RoundedMaster {
  std::span<float> master;
  std::span<Bf16> weight;
};

// The master as the two halves of bf16.h: `upper` is the weight that travels. 12 bytes a parameter with m and v.
struct SplitMaster {
  std::span<Bf16> upper;
  std::span<int16_t> lower;
};

// All spans of one call have one length. Updates every element once.
// Throws InternalError when lengths differ or step < 1.
void adamw_update(std::span<float> master, std::span<float> m, std::span<float> v, const Gradient& gradient,
                  const AdamWStep& step);
void adamw_update(const RoundedMaster& master, std::span<float> m, std::span<float> v, const Gradient& gradient,
                  const AdamWStep& step);
void adamw_update(const SplitMaster& master, std::span<float> m, std::span<float> v, const Gradient& gradient,
                  const AdamWStep& step);

}  // namespace headrace::kernel
