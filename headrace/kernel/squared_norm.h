// The sum of squares of a flat fp32 buffer, for clipping by the global norm. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>

namespace headrace::kernel {

// Elements summed together; callers that split a buffer over threads split at multiples of this and add the parts in
// order of position, so that the total does not depend on the number of threads.
inline constexpr size_t kNormChunk = 16384;

// Sum over the span, accumulated chunk by chunk in double: relative error below 1e-6 for any length.
// NaN or Inf when any element is.
double squared_norm(std::span<const float> values);

}  // namespace headrace::kernel
