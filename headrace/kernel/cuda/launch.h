// What the device's kernels share: wide accesses and launches, always of kThreads a block. For .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "headrace/base/errors.h"

struct CUstream_st;

namespace headrace::kernel::cuda {

inline constexpr int kThreads = 256;  // of a block
inline constexpr int kWide = 4;       // [elements] of a 16-byte access of fp32

// Neighbours that one access moves; at must be aligned to all of them.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T at[kCount];
};

template <int kCount, class T>
__device__ Pack<T, kCount> load_pack(const T* at) {
  return *reinterpret_cast<const Pack<T, kCount>*>(at);
}

template <class T, int kCount>
__device__ void store_pack(const Pack<T, kCount>& values, T* at) {
  *reinterpret_cast<Pack<T, kCount>*>(at) = values;
}

// Whether 16-byte accesses of fp32 can begin there, or 8-byte ones of bf16.
template <class T>
bool is_wide(const T* address) {
  return reinterpret_cast<uintptr_t>(address) % (sizeof(T) * kWide) == 0;
}

inline unsigned blocks_for(int64_t count, int64_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

// Queues a kernel. The arguments are copied before this returns.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, CUstream_st* stream, const Arguments&... arguments) {
#ifdef __CUDACC__
  kernel<<<grid, kThreads, 0, stream>>>(arguments...);
#else  // tests/support/simt: on the host, at once
  (void)stream;
  simt::run(grid, kThreads, [&] { kernel(arguments...); });
#endif
}

// After a launch: DeviceError at `verb` when it was refused.
inline void expect_launched(const char* verb) {
  const cudaError_t result = cudaGetLastError();
  if (result == cudaSuccess) return;
  throw DeviceError(verb, std::string("launch refused: ") + cudaGetErrorString(result) + ".");
}

}  // namespace headrace::kernel::cuda
