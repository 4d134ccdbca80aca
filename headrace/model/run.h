// Whole-model inference over resident weights: evaluation, logits and generation token by token. One thread per
// Decoder.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/model/block.h"

namespace headrace::model {

// The last layer's output [N, C], before the final norm; no gradients kept. `blocks` are all blocks in order.
at::Tensor forward_all(const Model& model, std::span<const BlockBuffers> blocks, const Batch& batch);

// Summed loss and trained tokens of a batch, without gradients.
LossResult loss_all(const Model& model, std::span<const BlockBuffers> blocks, const Batch& batch);

// Generation with a key-value cache: the prompt at once, then one token at a time.
class Decoder {
 public:
  // `model` and `blocks` must outlive the decoder. `capacity` [tokens] bounds prompt and answer together; throws
  // DataError when it exceeds the positions that the model has learned.
  Decoder(const Model& model, std::span<const BlockBuffers> blocks, int64_t capacity);

  // Appends tokens and returns the logits [V] fp32 that follow the last one. Throws DataError beyond the capacity or
  // for an id outside the vocabulary.
  at::Tensor append(std::span<const int64_t> ids);

  int64_t length() const { return length_; }
  int64_t capacity() const { return capacity_; }

 private:
  at::Tensor append_layer(int64_t index, const at::Tensor& x_NC, const Batch& batch);

  const Model& model_;
  std::span<const BlockBuffers> blocks_;
  int64_t capacity_;
  int64_t length_ = 0;
  std::vector<at::Tensor> keys_, values_;  // per layer [capacity, num_kv_heads * head_dim]
};

}  // namespace headrace::model
