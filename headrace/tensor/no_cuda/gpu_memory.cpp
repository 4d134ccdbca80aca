// Stands in for headrace/tensor/cuda/ in a build without CUDA.
#include "headrace/tensor/gpu_memory.h"

namespace headrace::tensor {

void limit_gpu_memory(int64_t) {}
GpuMemory gpu_memory() { return {}; }

}  // namespace headrace::tensor
