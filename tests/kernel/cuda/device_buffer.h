// What the tests of the device's kernels share: memory there, and a reason to skip where there is no device.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace headrace::kernel {

// A flat buffer in device memory, `offset` elements behind an address that is aligned to anything. What lies beside it
// must still be there when it ends.
template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const std::vector<T>& values, size_t offset = 0) : count_(values.size()), offset_(offset) {
    const std::vector<unsigned char> guards(num_bytes(), kGuard);
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory_), num_bytes()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, guards.data(), num_bytes(), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~DeviceBuffer() {
    EXPECT_TRUE(has_guards()) << "a kernel wrote beside a buffer of " << count_ << " elements";
    cudaFree(memory_);
  }
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
  static constexpr unsigned char kGuard = 0xa5;
  static constexpr size_t kGuardElements = 8;  // more than the widest access

  size_t num_bytes() const { return (offset_ + count_ + kGuardElements) * sizeof(T); }
  bool has_guards() const {
    std::vector<unsigned char> bytes(num_bytes());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(bytes.data(), memory_, bytes.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset_ * sizeof(T));
    const auto end = begin + static_cast<std::ptrdiff_t>(count_ * sizeof(T));
    const auto is_guard = [](unsigned char byte) { return byte == kGuard; };
    return std::all_of(bytes.begin(), begin, is_guard) && std::all_of(end, bytes.end(), is_guard);
  }

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
