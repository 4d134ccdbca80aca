// CUDA devices as the runtime sees them. headrace/device/cuda/ asks the runtime; a build without CUDA has
// headrace/device/no_cuda/ instead, where every function throws one DeviceError that says how to build the other.
// Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace headrace::device::cuda {

// True in a build with the cuda preset, whatever the machine has.
bool is_built() noexcept;

// Usable GPUs. Throws DeviceError with the runtime's own reason (no driver, driver too old) instead of returning 0.
int num_devices();

struct Facts {
  std::string name;         // "NVIDIA H200"
  int64_t total_bytes = 0;  // device memory
  int64_t free_bytes = 0;   // of it, at the time of the call
  int major = 0;            // compute capability
  int minor = 0;
};

// Of device `index` in [0, num_devices()). Creates the device's context at the first call (some hundred ms, some
// hundred MB of device memory). Throws DeviceError.
Facts facts(int index);

}  // namespace headrace::device::cuda
