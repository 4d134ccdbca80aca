#include "headrace/model/run.h"

#include <string>

#include "headrace/base/errors.h"
#include "headrace/model/bound_block.h"
#include "headrace/model/cached_attention.h"
#include "headrace/model/layer.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

void check_blocks(const Model& model, std::span<const BlockBuffers> blocks) {
  if (std::ssize(blocks) == model.num_blocks()) return;
  throw InternalError("model.run", std::to_string(blocks.size()) + " buffers for a model of " +
                                       std::to_string(model.num_blocks()) + " blocks.");
}

}  // namespace

at::Tensor forward_all(const Model& model, std::span<const BlockBuffers> blocks, const Batch& batch) {
  check_blocks(model, blocks);
  at::Tensor x_NC;
  for (int64_t i = 0; i < model.head_index(); ++i) {
    x_NC = forward_block(model, i, blocks[i], x_NC, batch, Keep::kNothing).output_NC;
  }
  return x_NC;
}

LossResult loss_all(const Model& model, std::span<const BlockBuffers> blocks, const Batch& batch) {
  return loss(model, blocks[model.head_index()], blocks[0], forward_all(model, blocks, batch), batch);
}

Decoder::Decoder(const Model& model, std::span<const BlockBuffers> blocks, int64_t capacity)
    : model_(model), blocks_(blocks), capacity_(capacity) {
  check_blocks(model, blocks);
  const config::ModelShape& shape = model.shape();
  if (capacity < 1 || (shape.has_learned_positions() && capacity > shape.max_positions)) {
    throw DataError("model.generate", "prompt and answer of " + std::to_string(capacity) + " tokens do not fit the " +
                                          std::to_string(shape.max_positions) + " positions of the model.");
  }
  const auto options = blocks[0].weights.options().requires_grad(false);
  for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
    keys_.push_back(at::empty({capacity, shape.num_kv_heads * shape.head_dim}, options));
    values_.push_back(at::empty_like(keys_.back()));
  }
}

at::Tensor Decoder::append(std::span<const int64_t> ids) {
  const at::NoGradGuard no_grad;
  const auto num_new = std::ssize(ids);
  if (num_new == 0 || num_new > capacity_ - length_) {
    throw DataError("model.generate", std::to_string(length_) + " + " + std::to_string(num_new) +
                                          " tokens; from 1 to " + std::to_string(capacity_) + " fit.");
  }
  Batch batch;
  const auto device = blocks_[0].weights.device();
  batch.ids_N = at::tensor(at::ArrayRef<int64_t>(ids.data(), ids.size()), at::kLong);
  batch.positions_N = at::arange(length_, length_ + num_new, at::kLong);
  batch.targets_N = at::full({num_new}, kMasked, at::kLong);
  batch.document_starts = {0, num_new};
  check(batch, model_.shape());
  batch.ids_N = batch.ids_N.to(device);
  batch.positions_N = batch.positions_N.to(device);
  at::Tensor x_NC = forward_block(model_, 0, blocks_[0], {}, batch, Keep::kNothing).output_NC;
  for (int64_t layer = 0; layer < model_.shape().num_layers; ++layer) x_NC = append_layer(layer, x_NC, batch);
  length_ += num_new;
  const at::Tensor last = x_NC.slice(0, num_new - 1, num_new);
  return logits(model_, blocks_[model_.head_index()], blocks_[0], last).squeeze(0);
}

at::Tensor Decoder::append_layer(int64_t index, const at::Tensor& x_NC, const Batch& batch) {
  const config::ModelShape& shape = model_.shape();
  const BoundBlock block(model_.blocks()[index + 1], blocks_[index + 1]);
  const Layer layer(shape, index, block);
  LayerTape tape;
  layer.project(x_NC, batch.positions_N, tape);
  const int64_t query = shape.num_heads * shape.head_dim, key = shape.num_kv_heads * shape.head_dim;
  const std::vector<at::Tensor> parts = at::split_with_sizes(tape.qkv_NE, {query, key, key}, 1);
  const int64_t num_keys = length_ + x_NC.size(0);
  keys_[index].slice(0, length_, num_keys).copy_(parts[1]);
  values_[index].slice(0, length_, num_keys).copy_(parts[2]);
  // A prompt into an empty cache is a document like any other: the same bits as forward_all.
  if (length_ == 0) {
    tape.attention = tensor::attention(tape.qkv_NE, batch.document_starts, layer.attention_shape());
  } else {
    tape.attention.y_NO = cached_attention(parts[0], keys_[index].slice(0, 0, num_keys),
                                           values_[index].slice(0, 0, num_keys), layer.attention_shape());
  }
  layer.mix(x_NC, tape);
  return layer.finish(tape);
}

}  // namespace headrace::model
