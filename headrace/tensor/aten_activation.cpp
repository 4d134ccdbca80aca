#include "headrace/tensor/aten_ops.h"
#include "headrace/tensor/aten_types.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor::aten {

at::Tensor swiglu(const at::Tensor& gate_up_N2F) {
  const std::vector<at::Tensor> halves = wide(gate_up_N2F).chunk(2, 1);
  return (at::silu(halves[0]) * halves[1]).to(gate_up_N2F.scalar_type());
}

void swiglu_backward_(at::Tensor& gate_up_N2F, at::Tensor& grad_y_NF) {
  const at::Tensor y_NF = swiglu(gate_up_N2F), grad_y = wide(grad_y_NF);
  const std::vector<at::Tensor> halves = wide(gate_up_N2F).chunk(2, 1);
  const at::Tensor grad_gate = at::silu_backward(grad_y * halves[1], halves[0]);
  const at::Tensor grad_up = grad_y * at::silu(halves[0]);
  gate_up_N2F.copy_(at::cat({grad_gate, grad_up}, 1));
  grad_y_NF.copy_(y_NF);
}

at::Tensor gelu_tanh(const at::Tensor& x_NF) { return at::gelu(wide(x_NF), "tanh").to(x_NF.scalar_type()); }

void gelu_tanh_backward_(at::Tensor& x_NF, at::Tensor& grad_y_NF) {
  const at::Tensor y_NF = gelu_tanh(x_NF);
  x_NF.copy_(at::gelu_backward(wide(grad_y_NF), wide(x_NF), "tanh"));
  grad_y_NF.copy_(y_NF);
}

}  // namespace headrace::tensor::aten
