#include "headrace/model/spec.h"

#include <cmath>
#include <utility>

namespace headrace::model {
namespace {

using config::Family;
using config::ModelShape;

constexpr int64_t kAlignment = 16;  // [elements] a cache line of fp32: kernels may start at any parameter

int64_t align(int64_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

// Appends parameters one after the other; the order here is the order in the flat buffer.
class BlockBuilder {
 public:
  BlockBuilder(const ModelShape& shape, std::string block_name, std::string prefix)
      : shape_(shape), prefix_(std::move(prefix)), block_{std::move(block_name), {}, 0} {}

  void norm(Role role, const std::string& name, int64_t size) {
    add(role, name + ".weight", {size}, {Init::Kind::kOnes, 0.0, -1}, Layout::kVector);
  }
  void bias(Role role, const std::string& name, int64_t size) {
    add(role, name + ".bias", {size}, {Init::Kind::kZeros, 0.0, -1}, Layout::kVector);
  }
  // `scale` narrows the family's usual deviation.
  void matrix(Role role, const std::string& name, int64_t out, int64_t in, double scale = 1.0) {
    const Init init{Init::Kind::kNormal, shape_.initializer_range * scale, -1};
    const bool is_conv1d = shape_.family == Family::kGpt2 && role != Role::kHead;
    if (is_conv1d)
      add(role, name + ".weight", {in, out}, init, Layout::kInOut);
    else
      add(role, name + ".weight", {out, in}, init, Layout::kOutIn);
  }
  // Rows are tokens or positions. As a matrix [out, in] its columns are the features, like the head's that it may
  // double as.
  void embedding(Role role, const std::string& name, int64_t rows, int64_t zero_row) {
    const Init init{Init::Kind::kNormal, shape_.initializer_range, zero_row};
    add(role, name + ".weight", {rows, shape_.hidden_size}, init, Layout::kOutIn);
  }

  BlockSpec build() && { return std::move(block_); }

 private:
  void add(Role role, const std::string& name, std::vector<int64_t> dims, Init init, Layout layout) {
    int64_t numel = 1;
    for (int64_t dim : dims) numel *= dim;
    ParameterSpec parameter;
    parameter.name = prefix_ + name;
    parameter.shape = std::move(dims);
    parameter.offset = block_.numel;
    parameter.numel = numel;
    parameter.decays = layout != Layout::kVector;
    parameter.init = init;
    parameter.role = role;
    parameter.layout = layout;
    block_.numel += align(numel);
    block_.parameters.push_back(std::move(parameter));
  }

  const ModelShape& shape_;
  std::string prefix_;
  BlockSpec block_;
};

BlockSpec gpt2_layer(const ModelShape& shape, int64_t layer) {
  const std::string index = std::to_string(layer);
  BlockBuilder block(shape, "layer." + index, "transformer.h." + index + ".");
  const int64_t hidden = shape.hidden_size;
  const double residual_scale = 1.0 / std::sqrt(2.0 * static_cast<double>(shape.num_layers));
  block.norm(Role::kAttentionNorm, "ln_1", hidden);
  block.bias(Role::kAttentionNormBias, "ln_1", hidden);
  block.matrix(Role::kQkv, "attn.c_attn", 3 * hidden, hidden);
  block.bias(Role::kQkvBias, "attn.c_attn", 3 * hidden);
  block.matrix(Role::kAttentionOut, "attn.c_proj", hidden, hidden, residual_scale);
  block.bias(Role::kAttentionOutBias, "attn.c_proj", hidden);
  block.norm(Role::kMlpNorm, "ln_2", hidden);
  block.bias(Role::kMlpNormBias, "ln_2", hidden);
  block.matrix(Role::kUp, "mlp.c_fc", shape.intermediate_size, hidden);
  block.bias(Role::kUpBias, "mlp.c_fc", shape.intermediate_size);
  block.matrix(Role::kDown, "mlp.c_proj", hidden, shape.intermediate_size, residual_scale);
  block.bias(Role::kDownBias, "mlp.c_proj", hidden);
  return std::move(block).build();
}

// Query, key and value lie side by side so that one product serves the three.
void add_qkv(BlockBuilder& block, const ModelShape& shape) {
  const int64_t query = shape.num_heads * shape.head_dim;
  const int64_t key = shape.num_kv_heads * shape.head_dim;
  block.matrix(Role::kQuery, "self_attn.q_proj", query, shape.hidden_size);
  block.matrix(Role::kKey, "self_attn.k_proj", key, shape.hidden_size);
  block.matrix(Role::kValue, "self_attn.v_proj", key, shape.hidden_size);
  if (!shape.has_qkv_bias) return;
  block.bias(Role::kQueryBias, "self_attn.q_proj", query);
  block.bias(Role::kKeyBias, "self_attn.k_proj", key);
  block.bias(Role::kValueBias, "self_attn.v_proj", key);
}

BlockSpec opt_layer(const ModelShape& shape, int64_t layer) {
  const std::string index = std::to_string(layer);
  BlockBuilder block(shape, "layer." + index, "model.decoder.layers." + index + ".");
  const int64_t hidden = shape.hidden_size;
  block.norm(Role::kAttentionNorm, "self_attn_layer_norm", hidden);
  block.bias(Role::kAttentionNormBias, "self_attn_layer_norm", hidden);
  add_qkv(block, shape);
  block.matrix(Role::kAttentionOut, "self_attn.out_proj", hidden, hidden);
  block.bias(Role::kAttentionOutBias, "self_attn.out_proj", hidden);
  block.norm(Role::kMlpNorm, "final_layer_norm", hidden);
  block.bias(Role::kMlpNormBias, "final_layer_norm", hidden);
  block.matrix(Role::kUp, "fc1", shape.intermediate_size, hidden);
  block.bias(Role::kUpBias, "fc1", shape.intermediate_size);
  block.matrix(Role::kDown, "fc2", hidden, shape.intermediate_size);
  block.bias(Role::kDownBias, "fc2", hidden);
  return std::move(block).build();
}

BlockSpec llama_layer(const ModelShape& shape, int64_t layer) {
  const std::string index = std::to_string(layer);
  BlockBuilder block(shape, "layer." + index, "model.layers." + index + ".");
  const int64_t hidden = shape.hidden_size;
  block.norm(Role::kAttentionNorm, "input_layernorm", hidden);
  add_qkv(block, shape);
  if (shape.has_qk_norm) block.norm(Role::kQueryNorm, "self_attn.q_norm", shape.head_dim);
  if (shape.has_qk_norm) block.norm(Role::kKeyNorm, "self_attn.k_norm", shape.head_dim);
  block.matrix(Role::kAttentionOut, "self_attn.o_proj", hidden, shape.num_heads * shape.head_dim);
  if (shape.has_attention_out_bias) block.bias(Role::kAttentionOutBias, "self_attn.o_proj", hidden);
  block.norm(Role::kMlpNorm, "post_attention_layernorm", hidden);
  block.matrix(Role::kGate, "mlp.gate_proj", shape.intermediate_size, hidden);
  block.matrix(Role::kUp, "mlp.up_proj", shape.intermediate_size, hidden);
  if (shape.has_mlp_bias) block.bias(Role::kGateBias, "mlp.gate_proj", shape.intermediate_size);
  if (shape.has_mlp_bias) block.bias(Role::kUpBias, "mlp.up_proj", shape.intermediate_size);
  block.matrix(Role::kDown, "mlp.down_proj", hidden, shape.intermediate_size);
  if (shape.has_mlp_bias) block.bias(Role::kDownBias, "mlp.down_proj", hidden);
  return std::move(block).build();
}

BlockSpec embedding_block(const ModelShape& shape) {
  if (shape.family == Family::kGpt2) {
    BlockBuilder block(shape, "embedding", "transformer.");
    block.embedding(Role::kTokenEmbedding, "wte", shape.vocab_size, -1);
    block.embedding(Role::kPositionEmbedding, "wpe", shape.max_positions, -1);
    return std::move(block).build();
  }
  const bool is_opt = shape.family == Family::kOpt;
  BlockBuilder block(shape, "embedding", is_opt ? "model.decoder." : "model.");
  block.embedding(Role::kTokenEmbedding, "embed_tokens", shape.vocab_size, shape.padding_id);
  if (is_opt) {
    block.embedding(Role::kPositionEmbedding, "embed_positions", shape.max_positions + kOptPositionOffset, -1);
  }
  return std::move(block).build();
}

BlockSpec head_block(const ModelShape& shape) {
  BlockBuilder block(shape, "head", "");
  const bool is_gpt2 = shape.family == Family::kGpt2;
  const std::string norm = is_gpt2                        ? "transformer.ln_f"
                           : shape.family == Family::kOpt ? "model.decoder.final_layer_norm"
                                                          : "model.norm";
  block.norm(Role::kFinalNorm, norm, shape.hidden_size);
  if (!shape.has_rms_norm()) block.bias(Role::kFinalNormBias, norm, shape.hidden_size);
  if (!shape.is_tied) block.matrix(Role::kHead, "lm_head", shape.vocab_size, shape.hidden_size);
  return std::move(block).build();
}

}  // namespace

const ParameterSpec* BlockSpec::find(Role role) const {
  for (const ParameterSpec& parameter : parameters) {
    if (parameter.role == role) return &parameter;
  }
  return nullptr;
}

std::vector<BlockSpec> build_blocks(const ModelShape& shape) {
  std::vector<BlockSpec> blocks;
  blocks.push_back(embedding_block(shape));
  for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
    if (shape.family == Family::kGpt2)
      blocks.push_back(gpt2_layer(shape, layer));
    else if (shape.family == Family::kOpt)
      blocks.push_back(opt_layer(shape, layer));
    else
      blocks.push_back(llama_layer(shape, layer));
  }
  blocks.push_back(head_block(shape));
  return blocks;
}

}  // namespace headrace::model
