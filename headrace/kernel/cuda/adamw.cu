// Four elements a thread where addresses allow 16-byte accesses, else one; the roof is memory bandwidth (28 bytes an
// element).
#include <string>

#include "headrace/base/errors.h"
#include "headrace/kernel/adamw_constants.h"
#include "headrace/kernel/cuda/adamw.h"
#include "headrace/kernel/cuda/adamw_element.h"
#include "headrace/kernel/cuda/launch.h"

namespace headrace::kernel::cuda {
namespace {

struct Ranges {
  int64_t ends[kMaxDecayRanges];
  float keeps[kMaxDecayRanges];
  int count;
};

__device__ float keep_at(const Ranges& ranges, int64_t index) {
  int low = 0, high = ranges.count - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (index < ranges.ends[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return ranges.keeps[low];
}

__device__ void update(float& master, float& m, float& v, float gradient, float keep, const StepConstants& c) {
  update_element(master, m, v, __fmul_rn(gradient, c.gradient_scale), keep, c.adamw, c.correction);
}

template <int kCount>
__device__ void update_pack(const AdamWBuffers& b, const Ranges& ranges, const StepConstants& c, int64_t i) {
  auto master = load_pack<kCount>(b.master + i), m = load_pack<kCount>(b.m + i), v = load_pack<kCount>(b.v + i);
  const auto gradient = load_pack<kCount>(b.gradient + i);
  for (int k = 0; k < kCount; ++k) {
    update(master.at[k], m.at[k], v.at[k], gradient.at[k], keep_at(ranges, i + k), c);
  }
  store_pack(master, b.master + i);
  store_pack(m, b.m + i);
  store_pack(v, b.v + i);
}

template <int kCount>
__global__ void __launch_bounds__(kThreads)
    adamw_kernel(const AdamWBuffers b, const __grid_constant__ Ranges ranges, const StepConstants c) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (i + kCount <= b.count) return update_pack<kCount>(b, ranges, c, i);
  for (int64_t j = i; j < b.count; ++j) update_pack<1>(b, ranges, c, j);
}

[[noreturn]] void refuse(const std::string& fact) { throw InternalError("kernel.cuda.adamw", fact); }

void check(const AdamWBuffers& b, std::span<const DecayRange> ranges, const AdamWStep& step) {
  if (step.step < 1) refuse("step " + std::to_string(step.step) + " must be at least 1.");
  if (ranges.empty() || ranges.size() > kMaxDecayRanges) {
    refuse(std::to_string(ranges.size()) + " decay ranges, must be 1 to " + std::to_string(kMaxDecayRanges) + ".");
  }
  int64_t begin = 0;
  for (const DecayRange& range : ranges) {
    if (range.end < begin) refuse("a decay range ends at " + std::to_string(range.end) + " before its beginning.");
    begin = range.end;
  }
  if (begin != b.count) {
    refuse("decay ranges end at " + std::to_string(begin) + ", the buffers at " + std::to_string(b.count) + ".");
  }
}

}  // namespace

void adamw_update(const AdamWBuffers& buffers, std::span<const DecayRange> ranges, const AdamWStep& step,
                  CUstream_st* stream) {
  check(buffers, ranges, step);
  if (buffers.count == 0) return;
  AdamWStep undecayed = step;
  undecayed.weight_decay = 0;
  const StepConstants constants = constants_of(step);
  Ranges packed{};
  packed.count = static_cast<int>(ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    packed.ends[i] = ranges[i].end;
    packed.keeps[i] = ranges[i].decays ? constants.adamw.keep : constants_of(undecayed).adamw.keep;
  }
  if (is_wide(buffers.master) && is_wide(buffers.m) && is_wide(buffers.v) && is_wide(buffers.gradient)) {
    launch(adamw_kernel<kWide>, blocks_for(buffers.count, kThreads * kWide), stream, buffers, packed, constants);
  } else {
    launch(adamw_kernel<1>, blocks_for(buffers.count, kThreads), stream, buffers, packed, constants);
  }
  expect_launched("kernel.cuda.adamw");
}

}  // namespace headrace::kernel::cuda
