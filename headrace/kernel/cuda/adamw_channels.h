// headrace/kernel/adamw_channels.h on one device: the same functions on pointers into its memory. Same constants, same
// order of operations, no fused multiply-add: bitwise equal to the host's.
// Each queues one launch on `stream` (null: the default one) and returns; the caller owns all buffers and keeps them
// until the stream has passed. Accesses are 16 bytes wide where addresses allow.
// All throw InternalError when shapes and lines disagree (what device memory holds is trusted), DeviceError when the
// launch is refused. Errors of the kernel itself surface at the caller's next wait.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/kernel/adamw_channels.h"
#include "headrace/kernel/cuda/channels.h"

namespace headrace::kernel::cuda {

inline constexpr size_t kMaxWindowSlots = 16;

// A gradient in device memory: one of the two.
struct DeviceGradient {
  const float* fp32 = nullptr;
  const Bf16* bf16 = nullptr;
};

// One step of a window, as on the host; compact.
struct DeviceSlot {
  DeviceGradient gradient;
  float scale = 1;
};
struct DeviceWindow {
  std::span<const DeviceSlot> slots;  // 1 to kMaxWindowSlots; read before the call returns
  float mean_scale = 1;
};

// BiasCorrections in device memory, of all `count` chosen channels.
struct DeviceCorrections {
  const float* step_size = nullptr;
  const float* second_correction = nullptr;
  int64_t count = 0;
};

// What an update is made of beside the memory it updates.
struct DeviceStep {
  DeviceWindow window;
  DeviceCorrections corrections;
  ChannelAdamW adamw;
};

// Compact, the chosen lines only; but see adamw_update_selected.
struct DeviceState {
  float* master = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

void adamw_update_channels(const DeviceState& state, const MatrixShape& shape, Lines lines, const DeviceStep& step,
                           CUstream_st* stream);

// state.master is the whole matrix, updated in place at `channels`, step.corrections.count of them in device memory.
void adamw_update_selected(const DeviceState& state, const int32_t* channels, const MatrixShape& shape, Lines lines,
                           const DeviceStep& step, CUstream_st* stream);

// sum [count] = gradient * scale for a window's first step, else sum + gradient * scale.
void accumulate_gradient(float* sum, int64_t count, const DeviceSlot& slot, bool is_first, CUstream_st* stream);

}  // namespace headrace::kernel::cuda
