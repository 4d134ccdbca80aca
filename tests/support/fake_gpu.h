// Stands in for a GPU where there is none: policies treat it as one (its memory is reached by copies only, its kernels
// are those of kernel/cuda), but libtorch and the kernels compute on the host's memory. For programs that link
// cuda_kernels_on_host.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "headrace/device/device.h"
#include "headrace/os/affinity.h"

namespace headrace::support {

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
