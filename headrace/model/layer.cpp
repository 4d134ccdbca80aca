#include "headrace/model/layer.h"

#include <cmath>

#include "headrace/model/rope.h"
#include "headrace/tensor/fused_activation.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

// The roles that one product serves.
using Roles = BoundBlock::Roles;
constexpr Roles kJointQkv = {Role::kQkv}, kJointQkvBias = {Role::kQkvBias};
constexpr Roles kSplitQkv = {Role::kQuery, Role::kKey, Role::kValue};
constexpr Roles kSplitQkvBias = {Role::kQueryBias, Role::kKeyBias, Role::kValueBias};
constexpr Roles kGated = {Role::kGate, Role::kUp}, kGatedBias = {Role::kGateBias, Role::kUpBias};
constexpr Roles kPlain = {Role::kUp}, kPlainBias = {Role::kUpBias};

}  // namespace

Layer::Layer(const config::ModelShape& shape, int64_t index, const BoundBlock& block)
    : shape_(shape),
      block_(block),
      attention_{shape.num_heads, shape.num_kv_heads, shape.head_dim,
                 1.0 / std::sqrt(static_cast<double>(shape.head_dim)), shape.windows[index]},
      attention_norm_(block, Role::kAttentionNorm, Role::kAttentionNormBias, shape.norm_epsilon),
      mlp_norm_(block, Role::kMlpNorm, Role::kMlpNormBias, shape.norm_epsilon),
      query_norm_(block, Role::kQueryNorm, Role::kAttentionNormBias, shape.norm_epsilon),
      key_norm_(block, Role::kKeyNorm, Role::kAttentionNormBias, shape.norm_epsilon),
      is_gated_(block.has(Role::kGate)) {}

void Layer::project(const at::Tensor& x_NC, const at::Tensor& positions_N, LayerTape& tape) const {
  const at::Tensor normed = attention_norm_.forward(x_NC, &tape.attention_norm);
  tape.qkv_NE = block_.has(Role::kQkv) ? block_.linear(normed, kJointQkv, kJointQkvBias)
                                       : block_.linear(normed, kSplitQkv, kSplitQkvBias);
  if (shape_.has_qk_norm) norm_heads(tape);
  const auto [cos_NR, sin_NR] = rotary_tables(shape_, positions_N);
  if (cos_NR.defined()) tensor::rotary_(tape.qkv_NE, cos_NR, sin_NR, attention_);
}

void Layer::norm_heads(LayerTape& tape) const {
  const int64_t query = attention_.num_heads * attention_.head_dim, key = attention_.num_kv_heads * attention_.head_dim;
  at::Tensor query_NO = tape.qkv_NE.narrow(1, 0, query), key_NO = tape.qkv_NE.narrow(1, query, key);
  tape.raw_query_HD = query_NO.contiguous().view({-1, attention_.head_dim});
  tape.raw_key_KD = key_NO.contiguous().view({-1, attention_.head_dim});
  query_NO.copy_(query_norm_.forward(tape.raw_query_HD, &tape.query_norm).view_as(query_NO));
  key_NO.copy_(key_norm_.forward(tape.raw_key_KD, &tape.key_norm).view_as(key_NO));
}

void Layer::norm_heads_backward(const LayerTape& tape, at::Tensor& grad_qkv_NE) const {
  const int64_t query = attention_.num_heads * attention_.head_dim, key = attention_.num_kv_heads * attention_.head_dim;
  const auto through = [](const Norm& norm, const NormTape& norm_tape, const at::Tensor& raw, at::Tensor grad_NO) {
    const at::Tensor grad_y = grad_NO.contiguous().view_as(raw);
    at::Tensor grad_raw = at::zeros_like(raw);
    norm.backward(grad_y, raw, norm_tape, grad_raw);
    grad_NO.copy_(grad_raw.view_as(grad_NO));
  };
  through(query_norm_, tape.query_norm, tape.raw_query_HD, grad_qkv_NE.narrow(1, 0, query));
  through(key_norm_, tape.key_norm, tape.raw_key_KD, grad_qkv_NE.narrow(1, query, key));
}

void Layer::mix(const at::Tensor& x_NC, LayerTape& tape) const {
  tape.middle_NC = x_NC.clone();
  tensor::linear_add_(tape.middle_NC, tape.attention.y_NO, block_.get(Role::kAttentionOut).value,
                      block_.get(Role::kAttentionOutBias).value);
  const at::Tensor normed = mlp_norm_.forward(tape.middle_NC, &tape.mlp_norm);
  tape.pre_activation_NF = block_.linear(normed, is_gated_ ? kGated : kPlain, is_gated_ ? kGatedBias : kPlainBias);
}

LayerTape Layer::record(const at::Tensor& x_NC, const Batch& batch) const {
  LayerTape tape;
  project(x_NC, batch.positions_N, tape);
  tape.attention = tensor::attention(tape.qkv_NE, batch.document_starts, attention_);
  mix(x_NC, tape);
  return tape;
}

at::Tensor Layer::finish(const LayerTape& tape) const {
  at::Tensor output_NC = tape.middle_NC.clone();
  tensor::linear_add_(output_NC, activate(tape.pre_activation_NF), block_.get(Role::kDown).value,
                      block_.get(Role::kDownBias).value);
  return output_NC;
}

at::Tensor Layer::activate(const at::Tensor& pre_activation_NF) const {
  if (is_gated_) return tensor::swiglu(pre_activation_NF);
  if (shape_.activation == config::Activation::kGeluTanh) return tensor::gelu_tanh(pre_activation_NF);
  return shape_.activation == config::Activation::kRelu ? at::relu(pre_activation_NF) : at::gelu(pre_activation_NF);
}

// In place: the pre-activation becomes its gradient, grad_NF becomes the activation once more.
void Layer::activate_backward(at::Tensor& pre_activation_NF, at::Tensor& grad_NF) const {
  if (is_gated_) return tensor::swiglu_backward_(pre_activation_NF, grad_NF);
  if (shape_.activation == config::Activation::kGeluTanh)
    return tensor::gelu_tanh_backward_(pre_activation_NF, grad_NF);
  const at::Tensor activation_NF = activate(pre_activation_NF);
  pre_activation_NF = shape_.activation == config::Activation::kRelu
                          ? at::threshold_backward(grad_NF, pre_activation_NF, 0)
                          : at::gelu_backward(grad_NF, pre_activation_NF);
  grad_NF = activation_NF;
}

// Gradient of middle_NC; the tape's pre-activation is used up.
at::Tensor Layer::feed_forward_backward(const at::Tensor& grad_output_NC, LayerTape& tape) const {
  const tensor::Parameter down = block_.get(Role::kDown);
  at::Tensor grad_NF = tensor::linear_grad_input(grad_output_NC, down.value);
  activate_backward(tape.pre_activation_NF, grad_NF);
  tensor::linear_add_gradients(grad_output_NC, /*activation*/ grad_NF, down.gradient,
                               block_.get(Role::kDownBias).gradient);
  const at::Tensor normed = mlp_norm_.again(tape.middle_NC, tape.mlp_norm);
  const at::Tensor grad_normed = block_.linear_backward(tape.pre_activation_NF, normed, is_gated_ ? kGated : kPlain,
                                                        is_gated_ ? kGatedBias : kPlainBias);
  at::Tensor grad_middle_NC = grad_output_NC.clone();
  mlp_norm_.backward(grad_normed, tape.middle_NC, tape.mlp_norm, grad_middle_NC);
  return grad_middle_NC;
}

at::Tensor Layer::project_backward(const at::Tensor& grad_qkv_NE, const at::Tensor& x_NC, const LayerTape& tape) const {
  const at::Tensor normed = attention_norm_.again(x_NC, tape.attention_norm);
  return block_.has(Role::kQkv) ? block_.linear_backward(grad_qkv_NE, normed, kJointQkv, kJointQkvBias)
                                : block_.linear_backward(grad_qkv_NE, normed, kSplitQkv, kSplitQkvBias);
}

at::Tensor Layer::backward(const at::Tensor& grad_output_NC, const at::Tensor& x_NC, LayerTape& tape,
                           const Batch& batch) const {
  at::Tensor grad_x_NC = feed_forward_backward(grad_output_NC, tape);
  const at::Tensor grad_mixed = tensor::linear_backward(grad_x_NC, tape.attention.y_NO, block_.get(Role::kAttentionOut),
                                                        block_.get(Role::kAttentionOutBias));
  at::Tensor grad_qkv_NE =
      tensor::attention_backward(grad_mixed, tape.qkv_NE, tape.attention, batch.document_starts, attention_);
  const auto [cos_NR, sin_NR] = rotary_tables(shape_, batch.positions_N);
  if (cos_NR.defined()) tensor::rotary_(grad_qkv_NE, cos_NR, sin_NR, attention_, /*backward=*/true);
  if (shape_.has_qk_norm) norm_heads_backward(tape, grad_qkv_NE);
  const at::Tensor grad_normed = project_backward(grad_qkv_NE, x_NC, tape);
  attention_norm_.backward(grad_normed, x_NC, tape.attention_norm, grad_x_NC);
  return grad_x_NC;
}

}  // namespace headrace::model
