// What optim/adamw.h does, on buffers in a GPU's memory. One owner; work is queued on libtorch's default stream.
#pragma once

#include "headrace/optim/adamw.h"

namespace headrace::optim {

// As adamw_step, bit for bit; queues and returns. The kernels are kernel/cuda/adamw.h. Throws DeviceError when a launch
// is refused.
void gpu_adamw_step(const ParameterGroups& groups, const at::Tensor& weights, const at::Tensor& gradients,
                    AdamWState& state, kernel::AdamWStep step);

// As squared_norm, within rounding: sums of a few thousand squares in fp32, the rest in double, always in the same
// order. Waits for compute. Of any device's tensor.
double gpu_squared_norm(const ParameterGroups& groups, const at::Tensor& gradients);

}  // namespace headrace::optim
