// Matrix products of a block as autograd operations that add their weight gradients straight into the block's gradient
// buffer: no temporary the size of a weight, no separate accumulation pass.
// Shapes: N rows (tokens), I input channels, O output channels. fp32, contiguous, CPU. Any thread; uses torch's
// threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace headrace::tensor {

// A parameter as an operation sees it. Both are views that must outlive backward; neither takes part in autograd.
struct Parameter {
  at::Tensor value;     // undefined: the operation has no such parameter (a linear without bias)
  at::Tensor gradient;  // same shape as value; backward adds into it. Undefined: frozen, no gradient is computed
};

// x_NI times the transpose of weight_OI, plus bias_O where there is one. Backward runs when x_NI requires grad and adds
// into the parameters' gradients; a block's input must therefore require grad even when nobody wants its gradient.
// weight_OI may span parameters that adjoin in a flat buffer (q, k, v; gate, up): one product instead of three.
at::Tensor linear(const at::Tensor& x_NI, const Parameter& weight_OI, const Parameter& bias_O = {});

// residual_NO + linear(x_NI): the closing product of a sublayer and its residual in one pass.
at::Tensor linear_add(const at::Tensor& x_NI, const Parameter& weight_OI, const Parameter& bias_O,
                      const at::Tensor& residual_NO);

// Rows weight_VC[ids_N]. Takes no part in autograd: the result is a leaf for the first block.
at::Tensor embedding(const at::Tensor& ids_N, const at::Tensor& weight_VC);

// grad_weight_VC[ids_N[n]] += grad_NC[n], in the order of n for each row: the same bits for any thread count.
// Throws InternalError when shapes disagree or an id is outside [0, V).
void embedding_backward(const at::Tensor& ids_N, const at::Tensor& grad_NC, const at::Tensor& grad_weight_VC);

}  // namespace headrace::tensor
