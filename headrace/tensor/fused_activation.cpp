#include "headrace/tensor/fused_activation.h"

#include "headrace/kernel/activation.h"
#include "headrace/tensor/aten_ops.h"
#include "headrace/tensor/spans.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

constexpr size_t kElementsAThread = 16384;

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up_N2F) {
  if (!is_ours(gate_up_N2F)) return aten::swiglu(gate_up_N2F);
  const auto hidden = static_cast<size_t>(gate_up_N2F.size(1) / 2);
  at::Tensor y_NF = at::empty({gate_up_N2F.size(0), gate_up_N2F.size(1) / 2}, gate_up_N2F.options());
  const auto gate_up = const_floats(gate_up_N2F);
  const auto y = floats(y_NF);
  over_range(static_cast<size_t>(y_NF.size(0)), kElementsAThread / (hidden + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t n = begin; n < end; ++n) {
      kernel::swiglu(gate_up.subspan(2 * n * hidden, hidden), gate_up.subspan((2 * n + 1) * hidden, hidden),
                     y.subspan(n * hidden, hidden));
    }
  });
  return y_NF;
}

void swiglu_backward_(at::Tensor& gate_up_N2F, at::Tensor& grad_y_NF) {
  if (!is_ours(gate_up_N2F)) return aten::swiglu_backward_(gate_up_N2F, grad_y_NF);
  const auto hidden = static_cast<size_t>(grad_y_NF.size(1));
  const auto gate_up = floats(gate_up_N2F), grad_y = floats(grad_y_NF);
  over_range(
      static_cast<size_t>(grad_y_NF.size(0)), kElementsAThread / (hidden + 1) + 1, [&](size_t begin, size_t end) {
        for (size_t n = begin; n < end; ++n) {
          kernel::swiglu_backward(gate_up.subspan(2 * n * hidden, hidden),
                                  gate_up.subspan((2 * n + 1) * hidden, hidden), grad_y.subspan(n * hidden, hidden));
        }
      });
}

at::Tensor gelu_tanh(const at::Tensor& x_NF) {
  if (!is_ours(x_NF)) return aten::gelu_tanh(x_NF);
  at::Tensor y_NF = at::empty_like(x_NF);
  const auto x = const_floats(x_NF);
  const auto y = floats(y_NF);
  over_range(y.size(), kElementsAThread, [&](size_t begin, size_t end) {
    kernel::gelu_tanh(x.subspan(begin, end - begin), y.subspan(begin, end - begin));
  });
  return y_NF;
}

void gelu_tanh_backward_(at::Tensor& x_NF, at::Tensor& grad_y_NF) {
  if (!is_ours(x_NF)) return aten::gelu_tanh_backward_(x_NF, grad_y_NF);
  const auto x = floats(x_NF), grad_y = floats(grad_y_NF);
  over_range(x.size(), kElementsAThread, [&](size_t begin, size_t end) {
    kernel::gelu_tanh_backward(x.subspan(begin, end - begin), grad_y.subspan(begin, end - begin));
  });
}

}  // namespace headrace::tensor
