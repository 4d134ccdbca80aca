// Stands in for a GPU where there is none: policies treat it as one (its memory is reached by copies only, its kernels
// are those of kernel/cuda), but libtorch and the kernels compute on the host's memory. For programs that link
// cuda_kernels_on_host.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "headrace/device/cuda.h"
#include "headrace/device/device.h"
#include "headrace/os/affinity.h"

namespace headrace::support {

// Why kernels cannot run on the host here; empty where they can.
inline std::string why_no_fake_gpu() {
  if (device::cuda::is_built()) return "the kernels of this build need a real GPU's memory";
#ifdef __SANITIZE_THREAD__
  return "ThreadSanitizer does not know the fibers of the stand-in for a GPU";
#else
  return "";
#endif
}

class FakeGpu final : public device::Device {
 public:
  device::Kind kind() const override { return device::Kind::kCuda; }
  std::string describe() const override { return "a GPU that is none, for tests"; }
  device::Slab allocate(device::Tier tier, int64_t bytes) override { return device::map_pages(tier, bytes); }
  void copy(device::Direction, std::byte* to, const std::byte* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  bool shares_host_memory() const override { return false; }
  int gpu_index() const override { return -1; }
  const device::Cores& cores() const override { return cores_; }

 private:
  const device::Cores cores_{.compute = os::allowed_cores(), .host = os::allowed_cores()};
};

}  // namespace headrace::support
