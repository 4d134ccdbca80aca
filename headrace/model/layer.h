// One transformer layer: pre-norm attention and feed-forward with residuals, the same for every family but for biases,
// norms and activations. Forward and backward are explicit, so that a tape holds activations only and backward may
// overwrite what it no longer needs. Legend: N tokens, C hidden size, H query and K key-value heads of D channels,
// O = H * D, E = (H + 2K) * D, F feed-forward size.
#pragma once

#include "headrace/model/bound_block.h"
#include "headrace/model/norm.h"
#include "headrace/tensor/fused_attention.h"

namespace headrace::model {

// What one layer's backward needs beside its input.
struct LayerTape {
  NormTape attention_norm, mlp_norm, query_norm, key_norm;
  at::Tensor raw_query_HD, raw_key_KD;  // [N * heads, D] before their norm; families with head norms only
  at::Tensor qkv_NE;                    // rotated
  tensor::Attention attention;
  at::Tensor middle_NC;          // after attention and its residual
  at::Tensor pre_activation_NF;  // [N, 2F] gate and up side by side where the family gates
};

class Layer {
 public:
  // `index` counts layers from 0. The model's shape and the block must outlive this object.
  Layer(const config::ModelShape& shape, int64_t index, const BoundBlock& block);

  // All of the forward but the last product, which backward does not need: see finish().
  LayerTape record(const at::Tensor& x_NC, const Batch& batch) const;
  at::Tensor finish(const LayerTape& tape) const;

  // Consumes the tape; adds the parameters' gradients; returns the gradient of x.
  at::Tensor backward(const at::Tensor& grad_output_NC, const at::Tensor& x_NC, LayerTape& tape,
                      const Batch& batch) const;

  // The halves of record(), for generation with a cache: rotated queries, keys and values; then the rest.
  void project(const at::Tensor& x_NC, const at::Tensor& positions_N, LayerTape& tape) const;
  void mix(const at::Tensor& x_NC, LayerTape& tape) const;

  const tensor::AttentionShape& attention_shape() const { return attention_; }

 private:
  at::Tensor activate(const at::Tensor& pre_activation_NF) const;
  void activate_backward(at::Tensor& pre_activation_NF, at::Tensor& grad_NF) const;
  void norm_heads(LayerTape& tape) const;
  void norm_heads_backward(const LayerTape& tape, at::Tensor& grad_qkv_NE) const;
  at::Tensor feed_forward_backward(const at::Tensor& grad_output_NC, LayerTape& tape) const;
  at::Tensor project_backward(const at::Tensor& grad_qkv_NE, const at::Tensor& x_NC, const LayerTape& tape) const;

  const config::ModelShape& shape_;
  const BoundBlock& block_;
  tensor::AttentionShape attention_;
  Norm attention_norm_, mlp_norm_, query_norm_, key_norm_;
  bool is_gated_;
};

}  // namespace headrace::model
