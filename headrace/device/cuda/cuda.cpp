#include "headrace/device/cuda.h"

#include <cuda_runtime_api.h>

#include "headrace/base/errors.h"
#include "headrace/device/cuda/check.h"

namespace headrace::device::cuda {
bool is_built() noexcept { return true; }

int num_devices() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cannot count the GPUs");
  return count;
}

Facts facts(int index) {
  const int count = num_devices();
  if (index < 0 || index >= count) {
    throw DeviceError("device.cuda", "no GPU " + std::to_string(index) + " among " + std::to_string(count) + ".");
  }
  int before = 0;
  check(cudaGetDevice(&before), "cannot ask for the current GPU");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cannot ask for the GPU's properties");
  size_t free_bytes = 0, total_bytes = 0;
  check(cudaSetDevice(index), "cannot open the GPU");
  const cudaError_t asked = cudaMemGetInfo(&free_bytes, &total_bytes);
  check(cudaSetDevice(before), "cannot return to the GPU used before");
  check(asked, "cannot ask for the GPU's memory");
  return {.name = properties.name,
          .total_bytes = static_cast<int64_t>(total_bytes),
          .free_bytes = static_cast<int64_t>(free_bytes),
          .major = properties.major,
          .minor = properties.minor};
}

}  // namespace headrace::device::cuda
