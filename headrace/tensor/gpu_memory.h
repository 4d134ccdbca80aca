// What libtorch takes of a GPU for activations and workspace, beside our own slabs. headrace/tensor/cuda/ does it; a
// build without CUDA has headrace/tensor/no_cuda/ instead, where there is nothing to take. Any thread.
#pragma once

#include <cstdint>

namespace headrace::tensor {

// From now on libtorch holds at most so many bytes of GPU 0 and throws c10::OutOfMemoryError where it would need more.
// Throws what libtorch does when there is no GPU.
void limit_gpu_memory(int64_t bytes);

struct GpuMemory {
  int64_t held = 0;  // [bytes] taken from the GPU now, whether tensors use them or not
  int64_t peak = 0;  // [bytes] at most so far
};
GpuMemory gpu_memory();

}  // namespace headrace::tensor
