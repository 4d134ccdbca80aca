// AdamW over one block's flat fp32 buffers, where they are: the CPU's memory, or a GPU's (gpu_adamw.h). The element's
// arithmetic is kernel/adamw.h; here are the groups, the counter and the threads. One owner; the call uses libtorch's
// intra-op threads, which change no bit.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

#include "headrace/kernel/adamw.h"
#include "headrace/optim/parameter_groups.h"

namespace headrace::optim {

// Moments of one block and how often they were updated.
struct AdamWState {
  at::Tensor m, v;      // fp32 [state_numel], contiguous, zero at first
  int64_t updates = 0;  // real updates of these elements; what the bias correction counts
};

// Zero moments for the trained elements.
AdamWState make_adamw_state(const ParameterGroups& groups, at::Device device = at::kCPU);

// One update of every trained element; weights in place. `step.step` is taken from the state, which it advances;
// `step.weight_decay` holds for the groups that decay, the others have none.
// weights and gradients: fp32, contiguous, one length. Throws InternalError otherwise.
void adamw_step(const ParameterGroups& groups, at::Tensor& weights, const at::Tensor& gradients, AdamWState& state,
                kernel::AdamWStep step);

// Sum of squares of the trained elements of a flat gradient: the same bits for any number of threads. Waits for a GPU.
double squared_norm(const ParameterGroups& groups, const at::Tensor& gradients);

}  // namespace headrace::optim
