// Activations between the two halves of a feed-forward sublayer. Shapes: N rows, F hidden channels; fp32, CPU.
// Elements are computed alone: the same bits for any thread count.
#pragma once

#include <ATen/core/Tensor.h>

namespace headrace::tensor {

// silu(gate) * up, where gate_up_N2F holds gate in its first F columns and up in the others (one product made both).
// Keeps only gate_up_N2F for backward.
at::Tensor swiglu(const at::Tensor& gate_up_N2F);

// The same from two tensors.
at::Tensor swiglu(const at::Tensor& gate_NF, const at::Tensor& up_NF);

// gelu_new, the tanh approximation (GPT-2).
at::Tensor gelu_tanh(const at::Tensor& x_NF);

}  // namespace headrace::tensor
