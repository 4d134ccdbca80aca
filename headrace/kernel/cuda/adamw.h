// The fused AdamW pass of headrace/kernel/adamw.h over a block's flat buffers in device memory. Same constants, same
// order of operations, no fused multiply-add, IEEE division and square root: bitwise equal to the host's.
// Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", arXiv 1711.05101, algorithm 2.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/kernel/adamw.h"

struct CUstream_st;  // what CUDA's headers call *cudaStream_t

namespace headrace::kernel::cuda {

// A block's flat fp32 buffers in the memory of one device, fastest where aligned to 16 bytes; the caller owns them and
// keeps them until the stream has passed the update.
struct AdamWBuffers {
  float* master = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  const float* gradient = nullptr;
  int64_t count = 0;  // [elements] of each
};

// Elements from the end of the range before (0 for the first) to `end`: whether weight_decay applies to them.
struct DecayRange {
  int64_t end = 0;
  bool decays = false;
};

inline constexpr int kMaxDecayRanges = 64;

// Queues one launch on `stream` (null: the default one) and returns; reads `ranges` before it returns. The ranges
// ascend and the last ends at buffers.count; `step` means what it means on the host.
// Throws InternalError when they do not, when there are more than kMaxDecayRanges or
// step.step < 1; DeviceError when the launch is refused. Errors of the kernel itself surface at the caller's next wait.
void adamw_update(const AdamWBuffers& buffers, std::span<const DecayRange> ranges, const AdamWStep& step,
                  CUstream_st* stream);

}  // namespace headrace::kernel::cuda
