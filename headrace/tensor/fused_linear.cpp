#include "headrace/tensor/fused_linear.h"

#include <algorithm>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/kernel/norm.h"
#include "headrace/tensor/aten_ops.h"
#include "headrace/tensor/spans.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor {

at::Tensor linear(const at::Tensor& x_NI, const at::Tensor& weight_OI, const at::Tensor& bias_O) {
  // Not at::linear: it may hand small sizes to another library, and copies a bias into the result the same way.
  return bias_O.defined() ? at::addmm(bias_O, x_NI, weight_OI.t()) : at::mm(x_NI, weight_OI.t());
}

void tall_linear_out(at::Tensor& out_NO, const at::Tensor& x_NI, const at::Tensor& weight_OI) {
  constexpr int64_t kTile = 384;  // [columns] measured: libtorch's product of 860 x 768 by 50257 rows gains most here
  const int64_t columns = weight_OI.size(0);
  if (out_NO.size(0) != x_NI.size(0) || out_NO.size(1) != columns || x_NI.size(1) != weight_OI.size(1)) {
    throw InternalError("tensor.tall_linear", "an output of " + std::to_string(out_NO.size(0)) + " x " +
                                                  std::to_string(out_NO.size(1)) + " for " +
                                                  std::to_string(x_NI.size(0)) + " rows and a weight of " +
                                                  std::to_string(columns) + " rows.");
  }
  if (!is_ours(x_NI)) {
    at::mm_out(out_NO, x_NI, weight_OI.t());
    return;
  }
  for (int64_t begin = 0; begin < columns; begin += kTile) {
    const int64_t count = std::min(kTile, columns - begin);
    at::Tensor tile = out_NO.narrow(1, begin, count);
    at::mm_out(tile, x_NI, weight_OI.narrow(0, begin, count).t());
  }
}

void linear_add_(at::Tensor& residual_NO, const at::Tensor& x_NI, const at::Tensor& weight_OI,
                 const at::Tensor& bias_O) {
  residual_NO.addmm_(x_NI, weight_OI.t());
  if (bias_O.defined()) residual_NO.add_(bias_O);
}

at::Tensor linear_grad_input(const at::Tensor& grad_NO, const at::Tensor& weight_OI) {
  return at::mm(grad_NO, weight_OI);
}

void linear_add_gradients(const at::Tensor& grad_NO, const at::Tensor& x_NI, const at::Tensor& grad_weight_OI,
                          const at::Tensor& grad_bias_O) {
  if (grad_weight_OI.defined()) {
    at::Tensor sum = grad_weight_OI;
    sum.addmm_(grad_NO.t(), x_NI);
  }
  if (grad_bias_O.defined()) add_row_sums(grad_NO, grad_bias_O);
}

at::Tensor linear_backward(const at::Tensor& grad_NO, const at::Tensor& x_NI, const Parameter& weight_OI,
                           const Parameter& bias_O) {
  linear_add_gradients(grad_NO, x_NI, weight_OI.gradient, bias_O.gradient);
  return linear_grad_input(grad_NO, weight_OI.value);
}

void add_row_sums(const at::Tensor& grad_NO, const at::Tensor& grad_O) {
  if (!is_ours(grad_NO)) return aten::add_row_sums(grad_NO, grad_O);
  const auto values = const_floats(grad_NO);
  const auto sum = floats(grad_O);
  over_channels(sum.size(), [&](kernel::Channels channels) { kernel::add_row_sums(values, channels, sum); });
}

void embedding_backward(const at::Tensor& ids_N, const at::Tensor& grad_NC, const at::Tensor& grad_weight_VC) {
  if (!is_ours(grad_NC)) return aten::embedding_backward(ids_N, grad_NC, grad_weight_VC);
  const int64_t channels = grad_weight_VC.size(1);
  const at::Tensor ids = ids_N.contiguous();
  const int64_t* id = ids.const_data_ptr<int64_t>();
  if (grad_NC.size(0) != ids.numel() || grad_NC.size(1) != channels ||
      (ids.numel() > 0 && ids.min().item<int64_t>() < 0) ||
      (ids.numel() > 0 && ids.max().item<int64_t>() >= grad_weight_VC.size(0))) {
    throw InternalError("tensor.embedding_backward",
                        std::to_string(ids.numel()) + " ids and " + std::to_string(grad_NC.size(0)) +
                            " gradient rows for a table of " + std::to_string(grad_weight_VC.size(0)) + " rows.");
  }
  const auto grad = const_floats(grad_NC);
  const auto sum = floats(grad_weight_VC);
  // Threads share out the channels, so that each row's additions keep the order of the tokens.
  over_channels(static_cast<size_t>(channels), [&](kernel::Channels range) {
    for (int64_t n = 0; n < ids.numel(); ++n) {
      const float* from = grad.data() + static_cast<size_t>(n) * range.total;
      float* to = sum.data() + static_cast<size_t>(id[n]) * range.total;
      for (size_t c = range.begin; c < range.end; ++c) to[c] += from[c];
    }
  });
}

}  // namespace headrace::tensor
