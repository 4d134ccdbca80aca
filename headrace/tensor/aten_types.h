// In which type libtorch's operators compute what is kept in another. Any thread.
#pragma once

#include <ATen/core/Tensor.h>

namespace headrace::tensor::aten {

// fp32 for 16-bit tensors, else their own type. No copy where that is the same.
inline at::Tensor wide(const at::Tensor& x) { return x.element_size() < 4 ? x.to(at::kFloat) : x; }

}  // namespace headrace::tensor::aten
