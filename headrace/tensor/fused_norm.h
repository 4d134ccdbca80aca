// Normalisation of rows as one pass forward and one backward. Shapes: N rows, C channels; fp32, CPU; x contiguous.
// Rows are computed alone and the weight gradient is summed in a fixed order: the same bits for any thread count.
#pragma once

#include <ATen/core/Tensor.h>

#include "headrace/tensor/fused_linear.h"

namespace headrace::tensor {

// x / sqrt(mean(x^2) + eps) * weight_C. Keeps x and one number a row for backward. x may be [.., C].
at::Tensor rms_norm(const at::Tensor& x_NC, const Parameter& weight_C, double eps);

// (x - mean) / sqrt(variance + eps) * weight_C + bias_C.
at::Tensor layer_norm(const at::Tensor& x_NC, const Parameter& weight_C, const Parameter& bias_C, double eps);

}  // namespace headrace::tensor
