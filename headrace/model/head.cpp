// Block L+1: final norm, head and loss. Legend: N tokens, R chosen rows, C hidden size, V vocabulary.
#include "headrace/model/block.h"
#include "headrace/model/bound_block.h"
#include "headrace/model/linear_cross_entropy.h"
#include "headrace/model/norm.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

static_assert(kMasked == kMaskedLabel);

Norm final_norm(const Model& model, const BoundBlock& head) {
  return {head, Role::kFinalNorm, Role::kFinalNormBias, model.shape().norm_epsilon};
}

tensor::Parameter head_matrix(const Model& model, const BoundBlock& head, const BlockBuffers& embedding) {
  if (!model.shape().is_tied) return head.get(Role::kHead);
  return BoundBlock(model.blocks()[0], embedding).get(Role::kTokenEmbedding);
}

// Rows whose target is trained: the others are never touched, not even by the norm.
at::Tensor trained_rows(const Batch& batch) {
  return batch.trained_rows_R.defined() ? batch.trained_rows_R : find_trained_rows(batch.targets_N);
}

}  // namespace

LossResult loss_forward_backward(const Model& model, const BlockBuffers& head, const BlockBuffers& embedding,
                                 const at::Tensor& x_NC, const Batch& batch, float grad_scale) {
  const at::NoGradGuard no_grad;
  LossResult result;
  result.grad_x_NC = at::zeros_like(x_NC);
  const at::Tensor rows = trained_rows(batch);
  if (rows.numel() == 0) return result;
  const BoundBlock bound(model.blocks()[model.head_index()], head);
  const Norm norm = final_norm(model, bound);
  NormTape tape;
  const at::Tensor x_RC = x_NC.index_select(0, rows);
  const tensor::Parameter matrix_VC = head_matrix(model, bound, embedding);
  // The loss computes no gradient at all without a place for the matrix's: a frozen head needs one to throw away.
  const at::Tensor gradient_VC = matrix_VC.gradient.defined() ? matrix_VC.gradient : at::zeros_like(matrix_VC.value);
  const LinearCrossEntropy loss = linear_cross_entropy(norm.forward(x_RC, &tape), matrix_VC.value,
                                                       batch.targets_N.index_select(0, rows), grad_scale, gradient_VC);
  at::Tensor grad_x_RC = at::zeros_like(x_RC);
  norm.backward(loss.grad_x_NC, x_RC, tape, grad_x_RC);
  result.loss_sum = loss.loss_sum;
  result.trained_tokens = loss.trained_tokens;
  result.grad_x_NC.index_copy_(0, rows, grad_x_RC);
  return result;
}

LossResult loss(const Model& model, const BlockBuffers& head, const BlockBuffers& embedding, const at::Tensor& x_NC,
                const Batch& batch) {
  const at::NoGradGuard no_grad;
  LossResult result;
  const at::Tensor rows = trained_rows(batch);
  if (rows.numel() == 0) return result;
  const BoundBlock bound(model.blocks()[model.head_index()], head);
  const at::Tensor normed_RC = final_norm(model, bound).forward(x_NC.index_select(0, rows), nullptr);
  const LinearCrossEntropy loss =
      linear_cross_entropy(normed_RC, head_matrix(model, bound, embedding).value, batch.targets_N.index_select(0, rows),
                           /*grad_scale=*/1.0F, /*grad_weight_VC=*/{});
  result.loss_sum = loss.loss_sum;
  result.trained_tokens = loss.trained_tokens;
  return result;
}

at::Tensor logits(const Model& model, const BlockBuffers& head, const BlockBuffers& embedding, const at::Tensor& x_NC,
                  const at::Tensor& rows) {
  const at::NoGradGuard no_grad;
  const BoundBlock bound(model.blocks()[model.head_index()], head);
  const at::Tensor x_RC = rows.defined() ? x_NC.index_select(0, rows) : x_NC;
  const at::Tensor normed_RC = final_norm(model, bound).forward(x_RC.contiguous(), nullptr);
  return at::mm(normed_RC, head_matrix(model, bound, embedding).value.t()).to(at::kFloat);
}

}  // namespace headrace::model
