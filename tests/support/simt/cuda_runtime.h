// Stands in for CUDA's runtime where there is no GPU: kernels compiled as C++ run on the host, thread by thread of a
// block, one block after the other, both in an order drawn anew for each launch. A barrier is one: threads wait at it
// in fibers of their own, so that a kernel which lacks one computes nonsense here too. Memory is the host's. Only what
// our kernels and their tests use is here. Any thread; launches of several go one after the other.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __launch_bounds__(threads)
#define __grid_constant__
#define __shared__ static  // blocks follow one another

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) float4 {
  float x, y, z, w;
};

namespace simt {

// Of the thread that runs now.
struct Place {
  dim3 thread, block, grid;
};
Place& place();

// Runs `body` once for each thread of each block; returns when all have ended. A grid that a GPU refuses, as one
// without blocks, is refused: nothing runs and the launching thread's take_error says so.
void run(dim3 grid, unsigned threads, const std::function<void()>& body);
// The running thread waits for the others of its block.
void barrier();

enum class Error { kNone, kInvalidGrid };
// Of this thread's launches since the last call.
Error take_error();

}  // namespace simt

#define threadIdx (::simt::place().thread)
#define blockIdx (::simt::place().block)
#define gridDim (::simt::place().grid)

inline void __syncthreads() { simt::barrier(); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __uint_as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation, cudaErrorInvalidConfiguration, cudaErrorNotSupported };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

inline cudaError_t cudaGetLastError() {
  return simt::take_error() == simt::Error::kNone ? cudaSuccess : cudaErrorInvalidConfiguration;
}
inline const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorNotSupported) return "ThreadSanitizer does not know the fibers of the stand-in for a GPU";
  if (error == cudaErrorInvalidConfiguration) return "invalid configuration argument";
  return error == cudaSuccess ? "no error" : "out of memory";
}
inline cudaError_t cudaGetDeviceCount(int* count) {
#ifdef __SANITIZE_THREAD__
  *count = 0;
  return cudaErrorNotSupported;
#else
  *count = 1;
  return cudaSuccess;
#endif
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
// Aligned as a GPU's memory is.
inline cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
