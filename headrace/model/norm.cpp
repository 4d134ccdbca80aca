#include "headrace/model/norm.h"

#include "headrace/tensor/fused_norm.h"

namespace headrace::model {

Norm::Norm(const BoundBlock& block, Role weight, Role bias, double epsilon)
    : weight_(block.get(weight)), bias_(block.get(bias)), epsilon_(epsilon) {}

at::Tensor Norm::forward(const at::Tensor& x_NC, NormTape* tape) const {
  if (!bias_.value.defined()) {
    tensor::RmsNorm result = tensor::rms_norm(x_NC, weight_.value, epsilon_);
    if (tape != nullptr) *tape = {{}, result.inverse_N};
    return result.y_NC;
  }
  tensor::LayerNorm result = tensor::layer_norm(x_NC, weight_.value, bias_.value, epsilon_);
  if (tape != nullptr) *tape = {result.mean_N, result.inverse_N};
  return result.y_NC;
}

at::Tensor Norm::again(const at::Tensor& x_NC, const NormTape& tape) const {
  if (!bias_.value.defined()) return tensor::rms_norm_again(x_NC, tape.inverse_N, weight_.value);
  return tensor::layer_norm_again(x_NC, {{}, tape.mean_N, tape.inverse_N}, weight_.value, bias_.value);
}

void Norm::backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const NormTape& tape,
                    at::Tensor& grad_x_NC) const {
  if (!bias_.value.defined()) {
    return tensor::rms_norm_backward(grad_y_NC, x_NC, tape.inverse_N, weight_, grad_x_NC);
  }
  tensor::layer_norm_backward(grad_y_NC, x_NC, {{}, tape.mean_N, tape.inverse_N}, weight_, bias_, grad_x_NC);
}

}  // namespace headrace::model
