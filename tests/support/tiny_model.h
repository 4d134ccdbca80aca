// A llama of a few thousand parameters with random weights and batches for it: enough to train in a test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/model/batch.h"
#include "headrace/model/init.h"
#include "headrace/model/model.h"

namespace headrace::support {

inline constexpr const char* kTinyConfig = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 67, "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true,
  "rope_theta": 10000.0, "initializer_range": 0.05, "bos_token_id": 1, "eos_token_id": 2})";

// A GPT-2 likewise, which stores matrices [in, out]: its channels are rows.
inline constexpr const char* kTinyGpt2 = R"({
  "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 67, "n_embd": 32, "n_layer": 2,
  "n_head": 4, "n_positions": 64, "n_inner": 48, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
  "initializer_range": 0.05, "bos_token_id": 1, "eos_token_id": 2})";

inline model::Model tiny_model() { return model::Model(config::ModelShape::parse(kTinyConfig, "tiny config")); }

inline std::vector<at::Tensor> random_weights(const model::Model& model, uint64_t seed) {
  std::vector<at::Tensor> weights;
  for (const model::BlockSpec& block : model.blocks()) {
    weights.push_back(at::zeros({block.numel}));
    model::initialize(block, seed, weights.back());
  }
  return weights;
}

// Documents of the given lengths; about one target in four is masked.
inline model::Batch random_batch(const std::vector<int64_t>& lengths, uint64_t seed, int64_t vocabulary = 67) {
  Rng rng(seed);
  std::vector<std::vector<int64_t>> documents, labels;
  for (int64_t length : lengths) {
    std::vector<int64_t> ids, targets;
    for (int64_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(vocabulary))));
      targets.push_back(rng.below(4) == 0 ? model::kMasked : ids.back());
    }
    documents.push_back(std::move(ids));
    labels.push_back(std::move(targets));
  }
  return model::pack(documents, labels);
}

}  // namespace headrace::support
