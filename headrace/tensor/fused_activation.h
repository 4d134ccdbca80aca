// Activations between the two halves of a feed-forward sublayer, with backward passes that work in place.
// Shapes: N rows, F hidden channels; contiguous. fp32 on the CPU: elements are computed alone, the same bits for any
// thread count. Other devices and types: libtorch's operators (aten_ops.h).
#pragma once

#include <ATen/core/Tensor.h>

namespace headrace::tensor {

// silu(gate) * up, where gate_up_N2F holds gate in its first F columns and up in the others (one product made both).
at::Tensor swiglu(const at::Tensor& gate_up_N2F);

// In place: gate_up_N2F becomes its own gradient, and grad_y_NF becomes y once more (bitwise equal to the first time),
// which the gradient of the product that follows needs.
void swiglu_backward_(at::Tensor& gate_up_N2F, at::Tensor& grad_y_NF);

// gelu_new, the tanh approximation (GPT-2).
at::Tensor gelu_tanh(const at::Tensor& x_NF);

// In place, as swiglu_backward_: x_NF becomes its own gradient, grad_y_NF becomes y.
void gelu_tanh_backward_(at::Tensor& x_NF, at::Tensor& grad_y_NF);

}  // namespace headrace::tensor
