#include "headrace/config/model_shape.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <initializer_list>
#include <iterator>

#include "headrace/base/errors.h"
#include "headrace/config/shape_fields.h"

namespace headrace::config {
namespace {

// Far above any known model, and low enough that no product of four of them overflows int64_t.
constexpr IntRange kVocab{1, 1 << 24};
constexpr IntRange kHidden{1, 1 << 17};
constexpr IntRange kIntermediate{1, 1 << 20};
constexpr IntRange kLayers{1, 1 << 10};
constexpr IntRange kHeads{1, 1 << 12};
constexpr IntRange kHeadDim{1, 1 << 12};
constexpr IntRange kPositions{1, 1 << 27};
constexpr IntRange kToken{-1, (1 << 24) - 1};
constexpr size_t kMaxFileBytes = size_t{16} << 20;

// Keys of other models or of quantised ones that would change the maths if they were believed.
constexpr std::string_view kRefusedKeys[] = {"quantization_config",
                                             "final_logit_softcapping",
                                             "attn_logit_softcapping",
                                             "embedding_multiplier",
                                             "residual_multiplier",
                                             "attention_multiplier",
                                             "logits_scaling",
                                             "logit_scale",
                                             "scale_emb",
                                             "scale_depth",
                                             "clip_qkv",
                                             "qk_layernorm",
                                             "use_qk_norm",
                                             "num_local_experts",
                                             "num_experts",
                                             "no_rope_layers",
                                             "alibi",
                                             "attention_chunk_size",
                                             "rope_interleaved",
                                             "per_layer_config"};

// Keys that say nothing about the maths of a forward pass.
constexpr std::string_view kHarmlessKeys[] = {"architectures",
                                              "model_type",
                                              "torch_dtype",
                                              "dtype",
                                              "transformers_version",
                                              "use_cache",
                                              "_name_or_path",
                                              "pretraining_tp",
                                              "task_specific_params",
                                              "output_hidden_states",
                                              "output_attentions",
                                              "return_dict",
                                              "reorder_and_upcast_attn",
                                              "n_ctx",
                                              "prefix",
                                              "transformers.js_config",

                                              "_attn_implementation",
                                              "_attn_implementation_autoset",
                                              "attn_implementation",
                                              "chunk_size_feed_forward",
                                              "id2label",
                                              "label2id",
                                              "num_labels",
                                              "problem_type",
                                              "is_decoder",
                                              "gradient_checkpointing",
                                              "head_dim_note",
                                              "summary_type",
                                              "summary_use_proj",
                                              "summary_activation",
                                              "summary_proj_to_labels",
                                              "summary_first_dropout"};

struct FamilyName {
  std::string_view name;
  Family family;
};
constexpr FamilyName kFamilies[] = {{"gpt2", Family::kGpt2},   {"opt", Family::kOpt},
                                    {"llama", Family::kLlama}, {"mistral", Family::kMistral},
                                    {"qwen2", Family::kQwen2}, {"qwen3", Family::kQwen3}};

Activation read_activation(ShapeFields& fields, std::string_view key, std::string_view fallback,
                           std::initializer_list<Activation> allowed) {
  struct Named {
    std::string_view name;
    Activation activation;
  };
  constexpr Named kNames[] = {{"gelu", Activation::kGelu},          {"gelu_new", Activation::kGeluTanh},
                              {"gelu_fast", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
                              {"relu", Activation::kRelu},          {"silu", Activation::kSilu},
                              {"swish", Activation::kSilu}};
  const std::string text = fields.text(key, fallback);
  std::string accepted;
  for (const Named& named : kNames) {
    if (std::find(allowed.begin(), allowed.end(), named.activation) == allowed.end()) continue;
    if (named.name == text) return named.activation;
    accepted += (accepted.empty() ? "" : ", ") + std::string(named.name);
  }
  fields.refuse(key, accepted + " are accepted");
}

void note_dropout(ShapeFields& fields, std::initializer_list<std::string_view> keys, ModelShape& shape) {
  for (std::string_view key : keys) {
    const double rate = fields.number(key, 0.0, 1.0, 0.0);
    if (rate == 0.0) continue;
    shape.notes.push_back(std::string(key) + " " + Json(rate).dump() +
                          " is not applied: training runs without dropout.");
  }
}

void read_tokens(ShapeFields& fields, ModelShape& shape) {
  shape.bos_id = fields.integer("bos_token_id", kToken, -1);
  if (!fields.has("eos_token_id")) return;
  const Json& eos = fields.value("eos_token_id");
  if (!eos.is_array()) {
    const int64_t id = fields.integer("eos_token_id", kToken);
    if (id >= 0) shape.eos_ids = {id};
    return;
  }
  for (const Json& id : eos) {
    const bool fits = is_int(id) && id.get<int64_t>() >= 0 && id.get<int64_t>() <= kToken.high;
    if (!fits || eos.size() > 1024) fields.refuse("eos_token_id", "a token or a list of at most 1024 is accepted");
    shape.eos_ids.push_back(id.get<int64_t>());
  }
}

// torch.nn.Embedding counts a negative padding index from the end of the vocabulary.
void read_padding(ShapeFields& fields, ModelShape& shape, int64_t fallback) {
  shape.padding_id = fallback;
  if (fields.is_null("pad_token_id")) shape.padding_id = -1;
  if (!fields.has("pad_token_id")) return;
  const int64_t id = fields.integer("pad_token_id", {-shape.vocab_size, shape.vocab_size - 1});
  shape.padding_id = id < 0 ? shape.vocab_size + id : id;
}

void read_gpt2(ShapeFields& fields, ModelShape& shape) {
  shape.hidden_size = fields.integer("n_embd", kHidden);
  shape.num_layers = fields.integer("n_layer", kLayers);
  shape.num_heads = shape.num_kv_heads = fields.integer("n_head", kHeads);
  shape.max_positions = fields.integer("n_positions", kPositions);
  shape.intermediate_size = fields.integer("n_inner", kIntermediate, 4 * shape.hidden_size);
  shape.norm_epsilon = fields.number("layer_norm_epsilon", 1e-12, 1.0, 1e-5);
  shape.initializer_range = fields.number("initializer_range", 0.0, 10.0, 0.02);
  shape.activation = read_activation(fields, "activation_function", "gelu_new",
                                     {Activation::kGeluTanh, Activation::kGelu, Activation::kRelu});
  shape.has_qkv_bias = shape.has_attention_out_bias = shape.has_mlp_bias = true;
  shape.is_tied = fields.boolean("tie_word_embeddings", true);
  fields.ignore("pad_token_id");  // gpt2's embedding has no padding row
  fields.require_bool("scale_attn_weights", true, true);
  fields.require_bool("scale_attn_by_inverse_layer_idx", false, false);
  fields.require_bool("add_cross_attention", false, false);
  note_dropout(fields, {"resid_pdrop", "embd_pdrop", "attn_pdrop"}, shape);
}

void read_opt(ShapeFields& fields, ModelShape& shape) {
  shape.hidden_size = fields.integer("hidden_size", kHidden);
  shape.num_layers = fields.integer("num_hidden_layers", kLayers);
  shape.num_heads = shape.num_kv_heads = fields.integer("num_attention_heads", kHeads);
  shape.max_positions = fields.integer("max_position_embeddings", kPositions);
  shape.intermediate_size = fields.integer("ffn_dim", kIntermediate);
  shape.initializer_range = fields.number("init_std", 0.0, 10.0, 0.02);
  shape.activation = read_activation(fields, "activation_function", "relu",
                                     {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh});
  shape.has_qkv_bias = shape.has_attention_out_bias = shape.has_mlp_bias = true;
  shape.is_tied = fields.boolean("tie_word_embeddings", true);
  read_padding(fields, shape, 1);
  if (shape.padding_id >= shape.vocab_size) shape.padding_id = -1;
  fields.require_bool("do_layer_norm_before", true, true);
  fields.require_bool("_remove_final_layer_norm", false, false);
  fields.require_bool("enable_bias", true, true);
  fields.require_bool("layer_norm_elementwise_affine", true, true);
  if (fields.integer("word_embed_proj_dim", kHidden, shape.hidden_size) != shape.hidden_size) {
    fields.refuse("word_embed_proj_dim", "only hidden_size, " + std::to_string(shape.hidden_size) + ", is supported");
  }
  note_dropout(fields, {"dropout", "attention_dropout", "activation_dropout", "layerdrop"}, shape);
}

void read_llama3(ShapeFields& fields, ModelShape& shape) {
  shape.rope.low_freq_factor = fields.number("low_freq_factor", 1e-6, 1e6);
  shape.rope.high_freq_factor = fields.number("high_freq_factor", 1e-6, 1e6);
  if (shape.rope.high_freq_factor <= shape.rope.low_freq_factor) {
    fields.refuse("high_freq_factor", "more than low_freq_factor is accepted");
  }
  shape.rope.original_positions = fields.integer("original_max_position_embeddings", kPositions, shape.max_positions);
}

// transformers 4 wrote rope_theta beside rope_scaling, transformers 5 writes rope_parameters; the older name wins
// there.
void read_rope(ShapeFields& fields, const std::string& source, ModelShape& shape) {
  shape.rope.type = RopeType::kDefault;
  shape.rope.theta = fields.number("rope_theta", 1.0, 1e12, 10000.0);
  if (fields.number("partial_rotary_factor", 0.0, 1.0, 1.0) != 1.0) {
    fields.refuse("partial_rotary_factor", "only 1 is supported");
  }
  const bool has_parameters = fields.has("rope_parameters");
  const bool has_scaling = fields.has("rope_scaling") && !fields.value("rope_scaling").empty();
  if (!has_parameters && !has_scaling) return;
  const std::string key = has_scaling ? "rope_scaling" : "rope_parameters";
  ShapeFields rope(fields.value(key), source, key + ".");
  shape.rope.theta = rope.number("rope_theta", 1.0, 1e12, shape.rope.theta);
  if (rope.number("partial_rotary_factor", 0.0, 1.0, 1.0) != 1.0) {
    rope.refuse("partial_rotary_factor", "only 1 is supported");
  }
  const std::string type_key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.text(type_key, "default");
  rope.ignore("type");
  if (type == "linear" || type == "llama3") {
    shape.rope.type = type == "linear" ? RopeType::kLinear : RopeType::kLlama3;
    shape.rope.factor = rope.number("factor", 1.0, 1e6);
    if (type == "llama3") read_llama3(rope, shape);
  } else if (type != "default") {
    rope.refuse(type_key, "default, linear, llama3 are supported");
  }
  for (const std::string& unknown : rope.unknown_keys()) {
    rope.refuse(unknown, "this key is not known for rope type " + type);
  }
}

void read_qwen_windows(ShapeFields& fields, ModelShape& shape) {
  const bool is_on = fields.boolean("use_sliding_window", false);
  const int64_t default_window = fields.is_null("sliding_window") ? 0 : 4096;
  const int64_t window = fields.integer("sliding_window", kPositions, default_window);
  const int64_t first = fields.integer("max_window_layers", {0, kLayers.high}, 28);
  for (int64_t i = 0; is_on && i < shape.num_layers; ++i) shape.windows[i] = i >= first ? window : 0;
  if (!fields.has("layer_types")) return;
  const Json& types = fields.value("layer_types");
  const std::string accepted = "a list of " + std::to_string(shape.num_layers) +
                               " full_attention or, with "
                               "use_sliding_window, sliding_attention is accepted";
  if (!types.is_array() || std::ssize(types) != shape.num_layers) fields.refuse("layer_types", accepted);
  for (int64_t i = 0; i < shape.num_layers; ++i) {
    const bool is_sliding = types[i] == "sliding_attention" && is_on && window > 0;
    if (!is_sliding && types[i] != "full_attention") fields.refuse("layer_types", accepted);
    shape.windows[i] = is_sliding ? window : 0;
  }
}

void read_windows(ShapeFields& fields, ModelShape& shape) {
  shape.windows.assign(shape.num_layers, 0);
  if (shape.family == Family::kQwen2 || shape.family == Family::kQwen3) return read_qwen_windows(fields, shape);
  if (shape.family == Family::kMistral) {
    const int64_t fallback = fields.is_null("sliding_window") ? 0 : 4096;
    shape.windows.assign(shape.num_layers, fields.integer("sliding_window", kPositions, fallback));
  } else if (fields.has("sliding_window")) {
    fields.refuse("sliding_window", "only null is supported for " + shape.model_type);
  }
  if (fields.has("layer_types")) fields.refuse("layer_types", "it is not supported for " + shape.model_type);
}

int64_t default_kv_heads(const ModelShape& shape) {
  if (shape.family == Family::kMistral) return 8;
  return shape.family == Family::kLlama ? shape.num_heads : 32;
}

// llama, mistral, qwen2 and qwen3 differ only in biases, head norms and windows.
void read_llama_like(ShapeFields& fields, const std::string& source, ModelShape& shape) {
  shape.hidden_size = fields.integer("hidden_size", kHidden);
  shape.num_layers = fields.integer("num_hidden_layers", kLayers);
  shape.num_heads = fields.integer("num_attention_heads", kHeads);
  const bool is_null = fields.is_null("num_key_value_heads");
  shape.num_kv_heads =
      fields.integer("num_key_value_heads", kHeads, is_null ? shape.num_heads : default_kv_heads(shape));
  shape.intermediate_size = fields.integer("intermediate_size", kIntermediate);
  shape.max_positions = fields.integer("max_position_embeddings", kPositions);
  shape.norm_epsilon = fields.number("rms_norm_eps", 1e-12, 1.0, 1e-6);
  shape.initializer_range = fields.number("initializer_range", 0.0, 10.0, 0.02);
  shape.activation = read_activation(fields, "hidden_act", "silu", {Activation::kSilu});
  shape.is_tied = fields.boolean("tie_word_embeddings", false);
  const bool is_qwen3 = shape.family == Family::kQwen3;
  if (fields.has("head_dim") || is_qwen3) shape.head_dim = fields.integer("head_dim", kHeadDim, 128);
  shape.has_qk_norm = is_qwen3;
  const bool is_biased = shape.family == Family::kQwen2;
  if (is_biased || shape.family == Family::kMistral) {
    fields.require_bool("attention_bias", is_biased, is_biased);
  } else {
    shape.has_attention_out_bias = fields.boolean("attention_bias", false);
  }
  shape.has_qkv_bias = is_biased || shape.has_attention_out_bias;
  if (shape.family == Family::kLlama)
    shape.has_mlp_bias = fields.boolean("mlp_bias", false);
  else
    fields.require_bool("mlp_bias", false, false);
  read_padding(fields, shape, -1);
  read_rope(fields, source, shape);
  note_dropout(fields, {"attention_dropout"}, shape);
}

// What must hold between fields; messages name both numbers.
void check_heads(ShapeFields& fields, ModelShape& shape, std::string_view heads_key) {
  if (shape.head_dim == 0) {
    if (shape.hidden_size % shape.num_heads != 0) {
      fields.refuse(heads_key, "a divisor of the hidden size, " + std::to_string(shape.hidden_size) + ", is accepted");
    }
    shape.head_dim = shape.hidden_size / shape.num_heads;
  }
  if (shape.num_heads % shape.num_kv_heads != 0) {
    fields.refuse("num_key_value_heads",
                  "a divisor of the " + std::to_string(shape.num_heads) + " attention heads is accepted");
  }
  if (shape.num_heads * shape.head_dim > 4 * kHidden.high) {
    fields.refuse("head_dim", "at most " + std::to_string(4 * kHidden.high / shape.num_heads) + " is accepted with " +
                                  std::to_string(shape.num_heads) + " heads");
  }
  if (!shape.has_learned_positions() && shape.head_dim % 2 != 0) {
    fields.refuse("head_dim", "rotary embedding needs an even head size, not " + std::to_string(shape.head_dim));
  }
}

Family read_family(ShapeFields& fields) {
  const std::string type = fields.text("model_type", "");
  std::string accepted;
  for (const FamilyName& known : kFamilies) {
    if (known.name == type) return known.family;
    accepted += (accepted.empty() ? "" : ", ") + std::string(known.name);
  }
  fields.refuse("model_type", accepted + " are supported");
}

void check_remaining_keys(ShapeFields& fields, ModelShape& shape) {
  for (std::string_view key : kRefusedKeys) {
    if (fields.has(key) && fields.value(key) != Json(false)) fields.refuse(key, "it is not supported");
  }
  fields.require_bool("is_encoder_decoder", false, false);
  for (std::string_view key : kHarmlessKeys) fields.ignore(key);
  size_t num_told = 0;
  for (const std::string& key : fields.unknown_keys()) {
    if (++num_told > 20) break;
    shape.notes.push_back("config key \"" + key.substr(0, 80) + "\" is not known and was ignored.");
  }
}

}  // namespace

ModelShape ModelShape::parse(std::string_view config_json_text, std::string_view source) {
  const Json json = parse_json(config_json_text, "config.parse", source);
  const std::string name(source);
  ShapeFields fields(json, name);
  ModelShape shape;
  shape.family = read_family(fields);
  shape.model_type = name_of(shape.family);
  shape.vocab_size = fields.integer("vocab_size", kVocab);
  const bool is_gpt2 = shape.family == Family::kGpt2;
  if (is_gpt2)
    read_gpt2(fields, shape);
  else if (shape.family == Family::kOpt)
    read_opt(fields, shape);
  else
    read_llama_like(fields, name, shape);
  check_heads(fields, shape, is_gpt2 ? "n_head" : "num_attention_heads");
  read_windows(fields, shape);
  read_tokens(fields, shape);
  check_remaining_keys(fields, shape);
  return shape;
}

ModelShape ModelShape::load(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw IoError("config.load", "cannot open", path.string(), errno, "A model folder needs a config.json.");
  }
  std::string text;
  char chunk[1 << 16];
  while (in.read(chunk, sizeof chunk) || in.gcount() > 0) {
    text.append(chunk, static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxFileBytes) {
      throw DataError("config.load", path.string() + " is larger than 16 MiB. Is it a config.json?");
    }
  }
  if (in.bad() || (text.empty() && errno != 0)) {
    throw IoError("config.load", "cannot read", path.string(), errno, "");
  }
  return parse(text, path.string());
}

std::string_view name_of(Family family) {
  for (const FamilyName& known : kFamilies) {
    if (known.family == family) return known.name;
  }
  return "unknown";
}

}  // namespace headrace::config
