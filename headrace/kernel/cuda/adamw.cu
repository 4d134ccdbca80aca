// Four elements a thread, so that every access is 16 bytes wide; the roof is memory bandwidth (28 bytes an element).
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

__device__ float4& wide(float* values, int64_t index) { return *reinterpret_cast<float4*>(values + index); }

__global__ void __launch_bounds__(kThreads)
    adamw_kernel(const AdamWBuffers b, const __grid_constant__ Ranges ranges, const StepConstants c) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kWide;
  if (i + kWide <= b.count) {
    float4 master = wide(b.master, i), m = wide(b.m, i), v = wide(b.v, i);
    const float4 gradient = *reinterpret_cast<const float4*>(b.gradient + i);
    update(master.x, m.x, v.x, gradient.x, keep_at(ranges, i), c);
    update(master.y, m.y, v.y, gradient.y, keep_at(ranges, i + 1), c);
    update(master.z, m.z, v.z, gradient.z, keep_at(ranges, i + 2), c);
    update(master.w, m.w, v.w, gradient.w, keep_at(ranges, i + 3), c);
    wide(b.master, i) = master;
    wide(b.m, i) = m;
    wide(b.v, i) = v;
    return;
  }
  for (int64_t j = i; j < b.count; ++j) update(b.master[j], b.m[j], b.v[j], b.gradient[j], keep_at(ranges, j), c);
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
  for (const float* buffer : std::initializer_list<const float*>{b.master, b.m, b.v, b.gradient}) {
    if (!is_wide(buffer)) refuse("a buffer is not aligned to 16 bytes.");
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
  const unsigned blocks = blocks_for(buffers.count, int64_t{kThreads} * kWide);
  adamw_kernel<<<blocks, kThreads, 0, stream>>>(buffers, packed, constants);
  expect_launched("kernel.cuda.adamw");
}

}  // namespace headrace::kernel::cuda
