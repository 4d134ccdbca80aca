#include "headrace/tensor/fused_norm.h"

#include "headrace/tensor/aten_ops.h"
#include "headrace/tensor/spans.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

constexpr size_t kRowsAThread = 16;

// A range of rows of one tensor.
template <class T>
std::span<T> rows_of(std::span<T> all, size_t begin, size_t end, size_t channels) {
  return all.subspan(begin * channels, (end - begin) * channels);
}

}  // namespace

RmsNorm rms_norm(const at::Tensor& x_NC, const at::Tensor& weight_C, double eps) {
  if (!is_ours(x_NC)) return aten::rms_norm(x_NC, weight_C, eps);
  RmsNorm result{at::empty_like(x_NC), at::empty({x_NC.size(0)}, x_NC.options())};
  const auto x = const_floats(x_NC), weight = const_floats(weight_C);
  const auto y = floats(result.y_NC), inverse = floats(result.inverse_N);
  const size_t c = weight.size();
  over_range(inverse.size(), kRowsAThread, [&](size_t begin, size_t end) {
    kernel::rms_norm(rows_of(x, begin, end, c), weight, static_cast<float>(eps), rows_of(y, begin, end, c),
                     rows_of(inverse, begin, end, 1));
  });
  return result;
}

at::Tensor rms_norm_again(const at::Tensor& x_NC, const at::Tensor& inverse_N, const at::Tensor& weight_C) {
  if (!is_ours(x_NC)) return aten::rms_norm_again(x_NC, inverse_N, weight_C);
  at::Tensor y_NC = at::empty_like(x_NC);
  const auto x = const_floats(x_NC), weight = const_floats(weight_C), inverse = const_floats(inverse_N);
  const auto y = floats(y_NC);
  const size_t c = weight.size();
  over_range(inverse.size(), kRowsAThread, [&](size_t begin, size_t end) {
    kernel::rms_norm_again(rows_of(x, begin, end, c), weight, rows_of(inverse, begin, end, 1),
                           rows_of(y, begin, end, c));
  });
  return y_NC;
}

void rms_norm_backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const at::Tensor& inverse_N,
                       const Parameter& weight_C, at::Tensor& grad_x_NC) {
  if (!is_ours(x_NC)) return aten::rms_norm_backward(grad_y_NC, x_NC, inverse_N, weight_C, grad_x_NC);
  const auto grad_y = const_floats(grad_y_NC), x = const_floats(x_NC), inverse = const_floats(inverse_N);
  const auto weight = const_floats(weight_C.value);
  const auto grad_x = floats(grad_x_NC);
  const size_t c = weight.size();
  over_range(inverse.size(), kRowsAThread, [&](size_t begin, size_t end) {
    kernel::rms_norm_backward(rows_of(grad_y, begin, end, c), rows_of(x, begin, end, c), weight,
                              rows_of(inverse, begin, end, 1), rows_of(grad_x, begin, end, c));
  });
  if (!weight_C.gradient.defined()) return;
  const auto sum = floats(weight_C.gradient);
  over_channels(
      c, [&](kernel::Channels channels) { kernel::add_norm_weight_gradient(grad_y, x, {}, inverse, channels, sum); });
}

LayerNorm layer_norm(const at::Tensor& x_NC, const at::Tensor& weight_C, const at::Tensor& bias_C, double eps) {
  if (!is_ours(x_NC)) return aten::layer_norm(x_NC, weight_C, bias_C, eps);
  const auto row_options = x_NC.options();
  LayerNorm result{at::empty_like(x_NC), at::empty({x_NC.size(0)}, row_options),
                   at::empty({x_NC.size(0)}, row_options)};
  const auto x = const_floats(x_NC), weight = const_floats(weight_C), bias = const_floats(bias_C);
  const auto y = floats(result.y_NC), mean = floats(result.mean_N), inverse = floats(result.inverse_N);
  const size_t c = weight.size();
  over_range(inverse.size(), kRowsAThread, [&](size_t begin, size_t end) {
    kernel::layer_norm(rows_of(x, begin, end, c), {weight, bias}, static_cast<float>(eps), rows_of(y, begin, end, c),
                       {rows_of(mean, begin, end, 1), rows_of(inverse, begin, end, 1)});
  });
  return result;
}

at::Tensor layer_norm_again(const at::Tensor& x_NC, const LayerNorm& saved, const at::Tensor& weight_C,
                            const at::Tensor& bias_C) {
  if (!is_ours(x_NC)) return aten::layer_norm_again(x_NC, saved, weight_C, bias_C);
  at::Tensor y_NC = at::empty_like(x_NC);
  const auto x = const_floats(x_NC), weight = const_floats(weight_C), bias = const_floats(bias_C);
  const auto mean = const_floats(saved.mean_N), inverse = const_floats(saved.inverse_N);
  const auto y = floats(y_NC);
  const size_t c = weight.size();
  over_range(inverse.size(), kRowsAThread, [&](size_t begin, size_t end) {
    kernel::layer_norm_again(rows_of(x, begin, end, c), {weight, bias},
                             {rows_of(mean, begin, end, 1), rows_of(inverse, begin, end, 1)},
                             rows_of(y, begin, end, c));
  });
  return y_NC;
}

void layer_norm_backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const LayerNorm& saved,
                         const Parameter& weight_C, const Parameter& bias_C, at::Tensor& grad_x_NC) {
  if (!is_ours(x_NC)) return aten::layer_norm_backward(grad_y_NC, x_NC, saved, weight_C, bias_C, grad_x_NC);
  const auto grad_y = const_floats(grad_y_NC), x = const_floats(x_NC), weight = const_floats(weight_C.value);
  const auto mean = const_floats(saved.mean_N), inverse = const_floats(saved.inverse_N);
  const auto grad_x = floats(grad_x_NC);
  const size_t c = weight.size();
  over_range(inverse.size(), kRowsAThread, [&](size_t begin, size_t end) {
    kernel::layer_norm_backward(rows_of(grad_y, begin, end, c), rows_of(x, begin, end, c), weight,
                                {rows_of(mean, begin, end, 1), rows_of(inverse, begin, end, 1)},
                                rows_of(grad_x, begin, end, c));
  });
  if (bias_C.gradient.defined()) add_row_sums(grad_y_NC, bias_C.gradient);
  if (!weight_C.gradient.defined()) return;
  const auto sum = floats(weight_C.gradient);
  over_channels(
      c, [&](kernel::Channels channels) { kernel::add_norm_weight_gradient(grad_y, x, mean, inverse, channels, sum); });
}

}  // namespace headrace::tensor
