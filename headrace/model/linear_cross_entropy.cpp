#include "headrace/model/linear_cross_entropy.h"

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/kernel/softmax_loss.h"
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

}  // namespace

LinearCrossEntropy linear_cross_entropy(const at::Tensor& x_NC, const at::Tensor& weight_VC,
                                        const at::Tensor& targets_N, float grad_scale, at::Tensor grad_weight_VC,
                                        int64_t logits_bytes) {
  check(x_NC, weight_VC, targets_N, grad_weight_VC);
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
  const int64_t budget_rows = std::max<int64_t>(1, logits_bytes / (weight_VC.size(0) * int64_t{sizeof(float)}));
  const int64_t num_chunks = (result.trained_tokens + budget_rows - 1) / budget_rows;
  // Chunks of nearly equal length: a short last one would be a slow product.
  const int64_t chunk = (result.trained_tokens + num_chunks - 1) / num_chunks;
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
