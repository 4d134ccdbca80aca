// What a model folder's config.json says about the maths: sizes, family, biases, rotary embedding, attention windows.
// Every key that changes the maths is honoured or refused by name and value. Plain data; safe from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::config {

enum class Family { kGpt2, kOpt, kLlama, kMistral, kQwen2, kQwen3 };
enum class Activation { kGelu, kGeluTanh, kRelu, kSilu };
enum class RopeType { kNone, kDefault, kLinear, kLlama3 };

// Rotary embedding: the inverse frequencies follow from these (model/rope.h).
struct Rope {
  RopeType type = RopeType::kNone;
  double theta = 10000.0;
  double factor = 1.0;             // linear, llama3; >= 1
  double low_freq_factor = 1.0;    // llama3
  double high_freq_factor = 4.0;   // llama3; > low_freq_factor
  int64_t original_positions = 0;  // [tokens] llama3: length of pretraining
};

struct ModelShape {
  Family family = Family::kLlama;
  std::string model_type;  // as in config.json: "llama", "gpt2", ...
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // divides num_heads
  int64_t head_dim = 0;      // num_heads * head_dim may differ from hidden_size
  int64_t intermediate_size = 0;
  int64_t max_positions = 0;  // [tokens] a hard limit where positions are learned (has_learned_positions)
  Activation activation = Activation::kSilu;
  double norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  Rope rope;
  bool is_tied = false;       // the head's matrix is the token embedding
  bool has_qkv_bias = false;  // biases of the query, key and value projections
  bool has_attention_out_bias = false;
  bool has_mlp_bias = false;
  bool has_qk_norm = false;      // qwen3: RMS norm of each head's query and key before the rotation
  int64_t padding_id = -1;       // this token's input embedding is never trained, as in torch.nn.Embedding; -1: none
  std::vector<int64_t> windows;  // [num_layers] keys a query sees, itself included; 0: all before it
  std::vector<int64_t> eos_ids;  // tokens that end generation; may be empty
  int64_t bos_id = -1;           // -1: none
  std::vector<std::string>
      notes;  // what the config says and this program deliberately does otherwise, one sentence each

  bool has_learned_positions() const { return rope.type == RopeType::kNone; }
  bool has_rms_norm() const { return rope.type != RopeType::kNone; }

  // Reads the text of a config.json. `source` names it in errors. Throws DataError naming the key, its value and what
  // is accepted. Sizes are limited so that no product of them overflows int64_t.
  static ModelShape parse(std::string_view config_json_text, std::string_view source);
  // Reads `folder`/config.json (at most 16 MiB). Throws IoError or DataError.
  static ModelShape load(const std::filesystem::path& folder);
};

std::string_view name_of(Family family);

}  // namespace headrace::config
