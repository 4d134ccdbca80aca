// Matrix products of a block with their backward: the weight gradient goes straight into the block's gradient buffer,
// without a temporary the size of a weight. Explicit pairs, outside autograd: a tape then holds activations only.
// Shapes: N rows (tokens), I input channels, O output channels. Any device and floating type, one for all tensors of a
// call. Any thread; uses torch's threads. The bits of a product depend on libtorch's matrix library, which may order
// its sums by the thread count.
#pragma once

#include <ATen/core/Tensor.h>

namespace headrace::tensor {

// A parameter as backward sees it: views into the block's flat buffers.
struct Parameter {
  at::Tensor value;     // undefined: there is no such parameter (a product without bias)
  at::Tensor gradient;  // shape of value; backward adds into it. Undefined: frozen, no gradient is computed
};

// x_NI times the transpose of weight_OI, plus bias_O where it is defined. weight_OI may be a transposed view (GPT-2's
// [in, out] storage) and may span parameters that adjoin in a flat buffer (q, k, v; gate, up): one product, not three.
at::Tensor linear(const at::Tensor& x_NI, const at::Tensor& weight_OI, const at::Tensor& bias_O = {});

// out_NO = x_NI times the transpose of weight_OI, for a weight with far more rows than x has (a head): in tiles of
// output columns, a quarter faster there than one product. Throws InternalError when shapes disagree.
void tall_linear_out(at::Tensor& out_NO, const at::Tensor& x_NI, const at::Tensor& weight_OI);

// residual_NO += linear(x_NI), in place: the closing product of a sublayer and its residual in one pass.
void linear_add_(at::Tensor& residual_NO, const at::Tensor& x_NI, const at::Tensor& weight_OI,
                 const at::Tensor& bias_O = {});

// Adds the parameters' gradients and returns the gradient of x_NI.
at::Tensor linear_backward(const at::Tensor& grad_NO, const at::Tensor& x_NI, const Parameter& weight_OI,
                           const Parameter& bias_O = {});

// The two halves of linear_backward, for callers that can free or overwrite something in between.
at::Tensor linear_grad_input(const at::Tensor& grad_NO, const at::Tensor& weight_OI);
void linear_add_gradients(const at::Tensor& grad_NO, const at::Tensor& x_NI, const at::Tensor& grad_weight_OI,
                          const at::Tensor& grad_bias_O = {});

// grad_O += the sum of grad_NO over rows, in an order that no thread count changes.
void add_row_sums(const at::Tensor& grad_NO, const at::Tensor& grad_O);

// grad_weight_VC[ids_N[n]] += grad_NC[n], in the order of n for each row: the same bits for any thread count.
// Throws InternalError when shapes disagree or an id is outside [0, V); on a GPU ids are trusted.
void embedding_backward(const at::Tensor& ids_N, const at::Tensor& grad_NC, const at::Tensor& grad_weight_VC);

}  // namespace headrace::tensor
