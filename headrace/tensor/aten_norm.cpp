#include "headrace/tensor/aten_ops.h"
#include "headrace/tensor/aten_types.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor::aten {
namespace {

at::Tensor column(const at::Tensor& values_N) { return values_N.unsqueeze(1); }

// Gradient of the input of normalised = (x - mean) * inverse, given that of the output; `centres` where a mean was
// taken off.
at::Tensor grad_of_normalised(const at::Tensor& grad, const at::Tensor& normalised, const at::Tensor& inverse_N,
                              bool centres) {
  at::Tensor inner = grad - normalised * (grad * normalised).mean(1, /*keepdim=*/true);
  if (centres) inner = inner - grad.mean(1, /*keepdim=*/true);
  return inner * column(inverse_N);
}

// Adds what the output's gradient makes of the norm's parameters and its input.
void norm_backward(const at::Tensor& grad_y_NC, const at::Tensor& normalised, const at::Tensor& inverse_N,
                   const Parameter& weight_C, bool centres, at::Tensor& grad_x_NC) {
  const at::Tensor grad = wide(grad_y_NC);
  grad_x_NC.add_(grad_of_normalised(grad * wide(weight_C.value), normalised, inverse_N, centres));
  if (!weight_C.gradient.defined()) return;
  at::Tensor sum = weight_C.gradient;
  sum.add_((grad * normalised).sum(0));
}

}  // namespace

RmsNorm rms_norm(const at::Tensor& x_NC, const at::Tensor& weight_C, double eps) {
  const at::Tensor inverse_N = (wide(x_NC).square().mean(1) + eps).rsqrt();
  return {rms_norm_again(x_NC, inverse_N, weight_C), inverse_N};
}

at::Tensor rms_norm_again(const at::Tensor& x_NC, const at::Tensor& inverse_N, const at::Tensor& weight_C) {
  return (wide(x_NC) * column(inverse_N) * wide(weight_C)).to(x_NC.scalar_type());
}

void rms_norm_backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const at::Tensor& inverse_N,
                       const Parameter& weight_C, at::Tensor& grad_x_NC) {
  norm_backward(grad_y_NC, wide(x_NC) * column(inverse_N), inverse_N, weight_C, /*centres=*/false, grad_x_NC);
}

LayerNorm layer_norm(const at::Tensor& x_NC, const at::Tensor& weight_C, const at::Tensor& bias_C, double eps) {
  const at::Tensor x = wide(x_NC), mean_N = x.mean(1);
  const at::Tensor inverse_N = ((x - column(mean_N)).square().mean(1) + eps).rsqrt();
  LayerNorm result{{}, mean_N, inverse_N};
  result.y_NC = aten::layer_norm_again(x_NC, result, weight_C, bias_C);
  return result;
}

at::Tensor layer_norm_again(const at::Tensor& x_NC, const LayerNorm& saved, const at::Tensor& weight_C,
                            const at::Tensor& bias_C) {
  const at::Tensor normalised = (wide(x_NC) - column(saved.mean_N)) * column(saved.inverse_N);
  return (normalised * wide(weight_C) + wide(bias_C)).to(x_NC.scalar_type());
}

void layer_norm_backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const LayerNorm& saved,
                         const Parameter& weight_C, const Parameter& bias_C, at::Tensor& grad_x_NC) {
  const at::Tensor normalised = (wide(x_NC) - column(saved.mean_N)) * column(saved.inverse_N);
  norm_backward(grad_y_NC, normalised, saved.inverse_N, weight_C, /*centres=*/true, grad_x_NC);
  if (bias_C.gradient.defined()) add_row_sums(grad_y_NC, bias_C.gradient);
}

}  // namespace headrace::tensor::aten
