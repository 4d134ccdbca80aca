// In which type libtorch's operators compute what is kept in another. Any thread.
#pragma once

#include <ATen/core/Tensor.h>

namespace headrace::tensor::aten {

// fp32 for 16-bit tensors, else their own type.
inline at::ScalarType wide_type(const at::Tensor& x) { return x.element_size() < 4 ? at::kFloat : x.scalar_type(); }
// No copy where that is the same.
inline at::Tensor wide(const at::Tensor& x) { return x.to(wide_type(x)); }

}  // namespace headrace::tensor::aten
