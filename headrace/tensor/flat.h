// Views into a block's flat buffer: no copies, the buffer owns the bytes. Any thread.
#pragma once

#include <torch/types.h>

namespace headrace::tensor {

// `shape` at `offset` [elements] of the one-dimensional contiguous `flat`. Throws InternalError when it does not fit.
at::Tensor view_of(const at::Tensor& flat, int64_t offset, at::IntArrayRef shape);

}  // namespace headrace::tensor
