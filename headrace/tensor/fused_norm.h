// Normalisation of rows, one pass forward and one backward. Shapes: N rows, C channels; contiguous rows. fp32 on the
// CPU: rows are computed alone and parameter gradients are summed in a fixed order, the same bits for any thread count.
// Other devices and types: libtorch's operators (aten_ops.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "headrace/tensor/fused_linear.h"

namespace headrace::tensor {

struct RmsNorm {
  at::Tensor y_NC;
  at::Tensor inverse_N;  // 1 / sqrt(mean(x^2) + eps); with x all that backward needs
};

// x * inverse * weight_C.
RmsNorm rms_norm(const at::Tensor& x_NC, const at::Tensor& weight_C, double eps);

// y_NC once more, bitwise equal to the first time: cheaper to compute again than to keep.
at::Tensor rms_norm_again(const at::Tensor& x_NC, const at::Tensor& inverse_N, const at::Tensor& weight_C);

// grad_x_NC += gradient of x (it holds what came along the residual path, or zeros); adds the weight's gradient.
void rms_norm_backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const at::Tensor& inverse_N,
                       const Parameter& weight_C, at::Tensor& grad_x_NC);

struct LayerNorm {
  at::Tensor y_NC;
  at::Tensor mean_N;
  at::Tensor inverse_N;  // 1 / sqrt(variance + eps)
};

// (x - mean) * inverse * weight_C + bias_C.
LayerNorm layer_norm(const at::Tensor& x_NC, const at::Tensor& weight_C, const at::Tensor& bias_C, double eps);

at::Tensor layer_norm_again(const at::Tensor& x_NC, const LayerNorm& saved, const at::Tensor& weight_C,
                            const at::Tensor& bias_C);

// As rms_norm_backward. saved.y_NC is not read.
void layer_norm_backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const LayerNorm& saved,
                         const Parameter& weight_C, const Parameter& bias_C, at::Tensor& grad_x_NC);

}  // namespace headrace::tensor
