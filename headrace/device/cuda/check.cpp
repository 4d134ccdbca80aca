#include "headrace/device/cuda/check.h"

#include <string>

#include "headrace/base/errors.h"

namespace headrace::device::cuda {

void check(cudaError_t result, std::string_view what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw DeviceError("device.cuda", std::string(what) + ": " + cudaGetErrorString(result) +
                                       ". Check the driver with nvidia-smi, or use --device cpu.");
}

}  // namespace headrace::device::cuda
