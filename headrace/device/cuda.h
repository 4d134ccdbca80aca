// CUDA devices: what the runtime says of them, and one as a Device. headrace/device/cuda/ does it; a build without CUDA
// has headrace/device/no_cuda/ instead, where every function throws one DeviceError that says how to build the other.
// Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/device/device.h"

struct CUstream_st;  // what CUDA's headers call *cudaStream_t

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

struct Settings {
  int index = 0;                  // in [0, num_devices())
  int64_t budget_bytes = 0;       // of device memory, for slabs of this object alone; 0: what the GPU has
  CUstream_st* compute_stream{};  // where record() marks; null: the default stream, on which libtorch computes
};

// Each direction has a stream of its own that does not wait for the default stream, so copies go both ways and beside
// compute; they are fast from page-locked memory. The waiting thread sleeps. Host slabs are page-locked; where the
// system refuses they are pageable (Slab::is_page_locked) and there is one warning. Throws DeviceError.
std::unique_ptr<Device> make_device(const Settings& settings);

}  // namespace headrace::device::cuda
