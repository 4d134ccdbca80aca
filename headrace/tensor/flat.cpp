#include "headrace/tensor/flat.h"

#include <string>

#include "headrace/base/errors.h"

namespace headrace::tensor {

at::Tensor view_of(const at::Tensor& flat, int64_t offset, at::IntArrayRef shape) {
  const int64_t numel = c10::multiply_integers(shape);
  if (flat.dim() != 1 || !flat.is_contiguous() || offset < 0 || offset + numel > flat.numel()) {
    throw InternalError("tensor.view", "elements " + std::to_string(offset) + " to " + std::to_string(offset + numel) +
                                           " of a flat buffer of " + std::to_string(flat.numel()) + ".");
  }
  return flat.narrow(0, offset, numel).view(shape);
}

}  // namespace headrace::tensor
