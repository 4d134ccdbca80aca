// What the tests of the device's kernels share: memory there, and a reason to skip where there is no device.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace headrace::kernel {

// A flat buffer in device memory, `offset` elements behind an address that is aligned to anything.
template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const std::vector<T>& values, size_t offset = 0) : count_(values.size()), offset_(offset) {
    const size_t bytes = std::max<size_t>(1, count_ + offset_) * sizeof(T);
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory_), bytes), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~DeviceBuffer() { cudaFree(memory_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* data() const { return memory_ + offset_; }
  // Waits for the device.
  std::vector<T> to_host() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), data(), count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  size_t count_, offset_;
  T* memory_ = nullptr;
};

class NeedsGpu : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (const cudaError_t result = cudaGetDeviceCount(&count); result != cudaSuccess || count == 0) {
      GTEST_SKIP() << "no usable GPU: " << cudaGetErrorString(result);
    }
  }
};

}  // namespace headrace::kernel
