// The CUDA runtime's answers as exceptions. Any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace headrace::device::cuda {

// Throws DeviceError "[device.cuda] <what>: <the runtime's text>..." unless the call succeeded. The runtime's memory of
// the failure is cleared: the next launch would report it otherwise.
void check(cudaError_t result, std::string_view what);

}  // namespace headrace::device::cuda
