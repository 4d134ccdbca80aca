// A device's memory as libtorch's tensors. Any thread.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

#include "headrace/device/device.h"

namespace headrace::policy {

// Where libtorch computes on such memory.
at::Device torch_device(const device::Device& device);

// fp32 [numel] at an address of the device's memory, which stays its owner's. `at` may be null for no elements.
at::Tensor tensor_at(const device::Device& device, float* at, int64_t numel);

}  // namespace headrace::policy
