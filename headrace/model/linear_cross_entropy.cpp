#include "headrace/model/linear_cross_entropy.h"

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/kernel/softmax_loss.h"
#include "headrace/tensor/aten_types.h"
#include "headrace/tensor/fused_linear.h"
#include "headrace/tensor/spans.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

void check(const at::Tensor& x_NC, const at::Tensor& weight_VC, const at::Tensor& targets_N,
           const at::Tensor& grad_weight_VC) {
  const bool agree = x_NC.dim() == 2 && weight_VC.dim() == 2 && targets_N.dim() == 1 &&
                     targets_N.scalar_type() == at::kLong && x_NC.size(1) == weight_VC.size(1) &&
                     x_NC.size(0) == targets_N.size(0) &&
                     (!grad_weight_VC.defined() || grad_weight_VC.sizes() == weight_VC.sizes());
  if (agree) return;
  throw InternalError("model.linear_cross_entropy",
                      "shapes of input, head, labels and gradient disagree: " + std::to_string(x_NC.size(0)) +
                          " rows, " + std::to_string(targets_N.numel()) + " labels.");
}

// Rows that carry a label, in order.
std::vector<int64_t> trained_rows(std::span<const int64_t> targets, int64_t vocabulary) {
  std::vector<int64_t> rows;
  for (size_t n = 0; n < targets.size(); ++n) {
    if (targets[n] == kMaskedLabel) continue;
    if (targets[n] < 0 || targets[n] >= vocabulary) {
      throw DataError("model.linear_cross_entropy", "label " + std::to_string(targets[n]) + " of token " +
                                                        std::to_string(n) + " is outside the vocabulary of " +
                                                        std::to_string(vocabulary) + ".");
    }
    rows.push_back(static_cast<int64_t>(n));
  }
  return rows;
}

// Losses of a chunk of rows; logits become their gradient when `scale` is given.
void differentiate(const at::Tensor& logits_RV, const int64_t* targets, const float* scale, double* losses) {
  const auto logits = tensor::floats(logits_RV);
  const auto vocabulary = static_cast<size_t>(logits_RV.size(1));
  tensor::over_tasks(static_cast<size_t>(logits_RV.size(0)), [&](size_t row, size_t) {
    const auto of_row = logits.subspan(row * vocabulary, vocabulary);
    const auto target = static_cast<size_t>(targets[row]);
    losses[row] = scale != nullptr ? kernel::cross_entropy_backward(of_row, target, *scale)
                                   : kernel::cross_entropy(of_row, target);
  });
}

// Rows of logits that exist at a time: chunks of nearly equal length, since a short last one would be a slow product.
int64_t chunk_rows(int64_t rows, int64_t row_bytes, int64_t logits_bytes) {
  const int64_t most = std::max<int64_t>(1, logits_bytes / row_bytes);
  const int64_t num_chunks = (rows + most - 1) / most;
  return (rows + num_chunks - 1) / num_chunks;
}

// Losses [R] of a chunk of rows by libtorch's operators; 0 where masked. Logits become their gradient when `scale` is
// given.
at::Tensor differentiate_anywhere(at::Tensor& logits_RV, const at::Tensor& targets_R, const float* scale) {
  const at::Tensor is_trained_R = targets_R.ne(kMaskedLabel);
  const at::Tensor target_R1 = targets_R.clamp_min(0).unsqueeze(1);
  const at::Tensor logits = tensor::aten::wide(logits_RV);
  const at::Tensor lse_R1 = at::logsumexp(logits, {1}, /*keepdim=*/true);
  const at::Tensor losses_R = (lse_R1 - logits.gather(1, target_R1)).squeeze(1).mul(is_trained_R);
  if (scale == nullptr) return losses_R;
  at::Tensor gradient = (logits - lse_R1).exp_();
  gradient.scatter_add_(1, target_R1, at::full_like(lse_R1, -1));
  logits_RV.copy_(gradient.mul_(is_trained_R.unsqueeze(1) * static_cast<double>(*scale)));
  return losses_R;
}

LinearCrossEntropy cross_entropy_anywhere(const at::Tensor& x_NC, const at::Tensor& weight_VC,
                                          const at::Tensor& targets_N, float grad_scale, at::Tensor& grad_weight_VC,
                                          int64_t logits_bytes) {
  const bool has_gradient = grad_weight_VC.defined();
  const int64_t rows = x_NC.size(0);
  LinearCrossEntropy result{.loss_sum = 0, .trained_tokens = 0, .grad_x_NC = {}};
  if (has_gradient) result.grad_x_NC = at::zeros_like(x_NC);
  if (rows == 0) return result;
  at::Tensor sums = at::zeros({2}, x_NC.options().dtype(at::kDouble));  // of losses and of trained rows
  const int64_t chunk = chunk_rows(rows, weight_VC.size(0) * int64_t{sizeof(float)}, logits_bytes);
  for (int64_t begin = 0; begin < rows; begin += chunk) {
    const int64_t count = std::min(chunk, rows - begin);
    const at::Tensor x = x_NC.narrow(0, begin, count), targets = targets_N.narrow(0, begin, count);
    at::Tensor logits = at::mm(x, weight_VC.t());
    sums[0].add_(differentiate_anywhere(logits, targets, has_gradient ? &grad_scale : nullptr).to(at::kDouble).sum());
    sums[1].add_(targets.ne(kMaskedLabel).sum());
    if (!has_gradient) continue;
    at::Tensor grad_x = result.grad_x_NC.narrow(0, begin, count);
    at::mm_out(grad_x, logits, weight_VC);
    grad_weight_VC.addmm_(logits.t(), x);
  }
  const at::Tensor host = sums.cpu();
  result.loss_sum = host[0].item<double>();
  result.trained_tokens = static_cast<int64_t>(host[1].item<double>());
  return result;
}

}  // namespace

LinearCrossEntropy linear_cross_entropy(const at::Tensor& x_NC, const at::Tensor& weight_VC,
                                        const at::Tensor& targets_N, float grad_scale, at::Tensor grad_weight_VC,
                                        int64_t logits_bytes) {
  check(x_NC, weight_VC, targets_N, grad_weight_VC);
  if (!tensor::is_ours(x_NC)) {
    return cross_entropy_anywhere(x_NC, weight_VC, targets_N, grad_scale, grad_weight_VC, logits_bytes);
  }
  const at::Tensor targets = targets_N.contiguous();
  const std::span<const int64_t> labels(targets.const_data_ptr<int64_t>(), static_cast<size_t>(targets.numel()));
  const std::vector<int64_t> rows = trained_rows(labels, weight_VC.size(0));
  const bool has_gradient = grad_weight_VC.defined();
  LinearCrossEntropy result{.loss_sum = 0, .trained_tokens = static_cast<int64_t>(rows.size()), .grad_x_NC = {}};
  if (has_gradient) result.grad_x_NC = at::zeros_like(x_NC);
  if (rows.empty()) return result;

  const at::Tensor index_R = at::tensor(rows, at::kLong);
  const at::Tensor x_RC = x_NC.index_select(0, index_R), targets_R = targets.index_select(0, index_R);
  const at::Tensor grad_x_RC = has_gradient ? at::empty_like(x_RC) : at::Tensor();
  const int64_t chunk = chunk_rows(result.trained_tokens, weight_VC.size(0) * int64_t{sizeof(float)}, logits_bytes);
  const at::Tensor buffer = at::empty({chunk, weight_VC.size(0)}, x_NC.options());
  std::vector<double> losses(rows.size());
  for (int64_t begin = 0; begin < result.trained_tokens; begin += chunk) {
    const int64_t count = std::min(chunk, result.trained_tokens - begin);
    const at::Tensor x = x_RC.narrow(0, begin, count);
    at::Tensor logits = buffer.narrow(0, 0, count);
    tensor::tall_linear_out(logits, x, weight_VC);
    differentiate(logits, targets_R.const_data_ptr<int64_t>() + begin, has_gradient ? &grad_scale : nullptr,
                  losses.data() + begin);
    if (!has_gradient) continue;
    at::Tensor grad_x = grad_x_RC.narrow(0, begin, count);
    at::mm_out(grad_x, logits, weight_VC);
    grad_weight_VC.addmm_(logits.t(), x);
  }
  for (const double loss : losses) result.loss_sum += loss;
  if (has_gradient) result.grad_x_NC.index_copy_(0, index_R, grad_x_RC);
  return result;
}

}  // namespace headrace::model
