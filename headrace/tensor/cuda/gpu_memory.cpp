#include "headrace/tensor/gpu_memory.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <algorithm>

namespace headrace::tensor {

void limit_gpu_memory(int64_t bytes) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  size_t free_bytes = 0, total_bytes = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  const double fraction = static_cast<double>(bytes) / static_cast<double>(total_bytes);
  c10::cuda::CUDACachingAllocator::setMemoryFraction(std::clamp(fraction, 0.0, 1.0), 0);
}

GpuMemory gpu_memory() {
  at::globalContext().lazyInitDevice(at::kCUDA);
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const c10::CachingDeviceAllocator::DeviceStats stats = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
  return {stats.reserved_bytes[kAll].current, stats.reserved_bytes[kAll].peak};
}

}  // namespace headrace::tensor
