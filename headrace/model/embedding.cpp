#include "headrace/model/embedding.h"

#include "headrace/model/bound_block.h"
#include "headrace/tensor/fused_linear.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

// Row of the position table that each token reads.
at::Tensor position_rows(const Model& model, const Batch& batch) {
  if (model.shape().family != config::Family::kOpt) return batch.positions_N;
  return batch.positions_N + kOptPositionOffset;
}

}  // namespace

at::Tensor forward_embedding(const Model& model, const BlockBuffers& buffers, const Batch& batch) {
  const BoundBlock block(model.blocks()[0], buffers);
  at::Tensor x_NC = block.get(Role::kTokenEmbedding).value.index_select(0, batch.ids_N);
  const at::Tensor positions = block.get(Role::kPositionEmbedding).value;
  if (positions.defined()) x_NC.add_(positions.index_select(0, position_rows(model, batch)));
  return x_NC;
}

void backward_embedding(const Model& model, const BlockBuffers& buffers, const at::Tensor& grad_NC,
                        const Batch& batch) {
  if (!buffers.gradients.defined()) return;
  const BoundBlock block(model.blocks()[0], buffers);
  if (block.has(Role::kPositionEmbedding)) {
    tensor::embedding_backward(position_rows(model, batch), grad_NC, block.get(Role::kPositionEmbedding).gradient);
  }
  const at::Tensor gradient = block.get(Role::kTokenEmbedding).gradient;
  const int64_t padding = model.shape().padding_id;
  if (padding < 0) return tensor::embedding_backward(batch.ids_N, grad_NC, gradient);
  const at::Tensor rows = batch.ids_N.ne(padding).nonzero().flatten();
  tensor::embedding_backward(batch.ids_N.index_select(0, rows), grad_NC.index_select(0, rows), gradient);
}

}  // namespace headrace::model
