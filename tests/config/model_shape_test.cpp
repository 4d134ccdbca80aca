#include "headrace/config/model_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"

namespace headrace::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json llama() {
  return {{"model_type", "llama"},         {"vocab_size", 128},        {"hidden_size", 64},
          {"num_hidden_layers", 3},        {"num_attention_heads", 4}, {"intermediate_size", 96},
          {"max_position_embeddings", 256}};
}
Json as_type(const char* type) {
  Json json = llama();
  json["model_type"] = type;
  json["num_key_value_heads"] = 2;
  return json;
}
Json gpt2() {
  return {{"model_type", "gpt2"}, {"vocab_size", 128}, {"n_embd", 64},
          {"n_layer", 2},         {"n_head", 4},       {"n_positions", 32}};
}
Json opt() {
  Json json = llama();
  json["model_type"] = "opt";
  json["ffn_dim"] = 128;
  return json;
}

ModelShape parse(const Json& json) { return ModelShape::parse(json.dump(), "test/config.json"); }

// The text of the error, or "" when the config was accepted.
std::string error_of(const Json& json) {
  try {
    parse(json);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}
std::string error_with(Json json, const char* key, Json value) {
  json[key] = std::move(value);
  return error_of(json);
}

TEST(ModelShape, ReadsLlamaWithItsDefaults) {
  const ModelShape shape = parse(llama());
  EXPECT_EQ(shape.family, Family::kLlama);
  EXPECT_EQ(shape.num_kv_heads, 4);
  EXPECT_EQ(shape.head_dim, 16);
  EXPECT_EQ(shape.norm_epsilon, 1e-6);
  EXPECT_EQ(shape.rope.type, RopeType::kDefault);
  EXPECT_EQ(shape.rope.theta, 10000.0);
  EXPECT_FALSE(shape.is_tied);
  EXPECT_FALSE(shape.has_qkv_bias);
  EXPECT_EQ(shape.padding_id, -1);
  EXPECT_THAT(shape.windows, ElementsAre(0, 0, 0));
  EXPECT_THAT(shape.notes, ElementsAre());
}

TEST(ModelShape, ReadsBiasesTokensAndPadding) {
  Json json = llama();
  json.update({{"attention_bias", true},
               {"mlp_bias", true},
               {"tie_word_embeddings", true},
               {"pad_token_id", -1},
               {"bos_token_id", 1},
               {"eos_token_id", {2, 7}}});
  const ModelShape shape = parse(json);
  EXPECT_TRUE(shape.has_qkv_bias && shape.has_attention_out_bias && shape.has_mlp_bias && shape.is_tied);
  EXPECT_EQ(shape.padding_id, 127) << "torch counts a negative padding index from the end";
  EXPECT_EQ(shape.bos_id, 1);
  EXPECT_THAT(shape.eos_ids, ElementsAre(2, 7));
}

TEST(ModelShape, ReadsGpt2AndNotesItsDropout) {
  Json json = gpt2();
  json["attn_pdrop"] = 0.1;
  json["pad_token_id"] = 5;
  const ModelShape shape = parse(json);
  EXPECT_EQ(shape.intermediate_size, 256);
  EXPECT_EQ(shape.activation, Activation::kGeluTanh);
  EXPECT_TRUE(shape.is_tied && shape.has_learned_positions());
  EXPECT_EQ(shape.padding_id, -1) << "gpt2's embedding has no padding row";
  ASSERT_EQ(shape.notes.size(), 1u);
  EXPECT_THAT(shape.notes[0], HasSubstr("attn_pdrop 0.1"));
}

TEST(ModelShape, ReadsOptWithItsDefaultPadding) {
  EXPECT_EQ(parse(opt()).padding_id, 1);
  EXPECT_EQ(parse(opt()).activation, Activation::kRelu);
  Json json = opt();
  json["pad_token_id"] = nullptr;
  EXPECT_EQ(parse(json).padding_id, -1);
}

TEST(ModelShape, ReadsMistralWindows) {
  EXPECT_THAT(parse(as_type("mistral")).windows, ElementsAre(4096, 4096, 4096)) << "absent means the class default";
  Json json = as_type("mistral");
  json["sliding_window"] = nullptr;
  EXPECT_THAT(parse(json).windows, ElementsAre(0, 0, 0)) << "null means none";
  json["sliding_window"] = 5;
  EXPECT_THAT(parse(json).windows, ElementsAre(5, 5, 5));
}

TEST(ModelShape, ReadsQwenWindowsPerLayer) {
  Json json = as_type("qwen2");
  json.update({{"sliding_window", 8}, {"max_window_layers", 1}});
  EXPECT_THAT(parse(json).windows, ElementsAre(0, 0, 0)) << "off by default";
  json["use_sliding_window"] = true;
  EXPECT_THAT(parse(json).windows, ElementsAre(0, 8, 8));
  json["layer_types"] = {"sliding_attention", "full_attention", "full_attention"};
  EXPECT_THAT(parse(json).windows, ElementsAre(8, 0, 0));
  json["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_THAT(error_of(json), HasSubstr("layer_types is a list of 2"));
}

TEST(ModelShape, ReadsQwenBiasesAndHeadNorms) {
  const ModelShape qwen2 = parse(as_type("qwen2"));
  EXPECT_TRUE(qwen2.has_qkv_bias);
  EXPECT_FALSE(qwen2.has_attention_out_bias || qwen2.has_qk_norm);
  const ModelShape qwen3 = parse(as_type("qwen3"));
  EXPECT_TRUE(qwen3.has_qk_norm);
  EXPECT_EQ(qwen3.head_dim, 128) << "qwen3's default does not follow from the hidden size";
}

TEST(ModelShape, ReadsBothSpellingsOfRope) {
  const Json scaling = {{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 64}};
  Json old_spelling = llama();
  old_spelling.update({{"rope_theta", 500000.0}, {"rope_scaling", scaling}});
  Json new_spelling = llama();
  new_spelling["rope_parameters"] = scaling;
  new_spelling["rope_parameters"]["rope_theta"] = 500000.0;
  for (const Json& json : {old_spelling, new_spelling}) {
    const Rope rope = parse(json).rope;
    EXPECT_EQ(rope.type, RopeType::kLlama3);
    EXPECT_EQ(rope.theta, 500000.0);
    EXPECT_EQ(rope.factor, 8.0);
    EXPECT_EQ(rope.original_positions, 64);
  }
  Json linear = llama();
  linear["rope_scaling"] = {{"type", "linear"}, {"factor", 2.5}};
  EXPECT_EQ(parse(linear).rope.type, RopeType::kLinear);
  EXPECT_EQ(parse(linear).rope.factor, 2.5);
}

TEST(ModelShape, RefusesMathsItDoesNotKnowByNameAndValue) {
  EXPECT_THAT(error_with(llama(), "hidden_act", "gelu"), HasSubstr("hidden_act is \"gelu\"; silu"));
  EXPECT_THAT(error_with(llama(), "partial_rotary_factor", 0.5), HasSubstr("partial_rotary_factor is 0.5"));
  EXPECT_THAT(error_with(llama(), "rope_scaling", {{"rope_type", "yarn"}, {"factor", 2}}),
              HasSubstr("rope_scaling.rope_type is \"yarn\""));
  EXPECT_THAT(error_with(llama(), "rope_parameters", {{"full_attention", {{"rope_theta", 1e6}}}}),
              HasSubstr("rope_parameters.full_attention"));
  EXPECT_THAT(error_with(llama(), "rope_interleaved", true), HasSubstr("rope_interleaved is true"));
  EXPECT_EQ(error_with(llama(), "rope_interleaved", false), "");
  EXPECT_THAT(error_with(llama(), "sliding_window", 9), HasSubstr("sliding_window is 9"));
  EXPECT_THAT(error_with(llama(), "quantization_config", Json::object()), HasSubstr("quantization_config"));
  EXPECT_THAT(error_with(as_type("qwen2"), "attention_bias", false), HasSubstr("attention_bias is false"));
  EXPECT_THAT(error_with(gpt2(), "scale_attn_by_inverse_layer_idx", true),
              HasSubstr("scale_attn_by_inverse_layer_idx"));
  EXPECT_THAT(error_with(gpt2(), "activation_function", "silu"), HasSubstr("activation_function is \"silu\""));
  EXPECT_THAT(error_with(opt(), "word_embed_proj_dim", 32),
              HasSubstr("word_embed_proj_dim is 32; only hidden_size, 64"));
  EXPECT_THAT(error_with(opt(), "do_layer_norm_before", false), HasSubstr("do_layer_norm_before is false"));
  EXPECT_THAT(error_with(llama(), "model_type", "mamba"), HasSubstr("model_type is \"mamba\"; gpt2, opt, llama"));
}

TEST(ModelShape, RefusesWrongTypesMissingKeysAndHostileSizes) {
  EXPECT_THAT(error_with(llama(), "hidden_size", nullptr), HasSubstr("hidden_size is missing"));
  EXPECT_THAT(error_with(llama(), "hidden_size", "64"), HasSubstr("hidden_size is \"64\""));
  EXPECT_THAT(error_with(llama(), "hidden_size", 64.5), HasSubstr("hidden_size is 64.5"));
  EXPECT_THAT(error_with(llama(), "hidden_size", -1), HasSubstr("hidden_size is -1"));
  EXPECT_THAT(error_with(llama(), "vocab_size", 1LL << 62), HasSubstr("vocab_size is"));
  EXPECT_THAT(error_with(llama(), "vocab_size", UINT64_MAX), HasSubstr("vocab_size is"));
  EXPECT_THAT(error_with(llama(), "num_hidden_layers", 1 << 30), HasSubstr("num_hidden_layers is"));
  EXPECT_THAT(error_with(llama(), "num_attention_heads", 0), HasSubstr("num_attention_heads is 0"));
  EXPECT_THAT(error_with(llama(), "num_attention_heads", 5), HasSubstr("a divisor of the hidden size, 64"));
  EXPECT_THAT(error_with(llama(), "num_key_value_heads", 3), HasSubstr("a divisor of the 4 attention heads"));
  EXPECT_THAT(error_with(llama(), "head_dim", 15), HasSubstr("even head size"));
  EXPECT_THAT(error_with(llama(), "pad_token_id", 128), HasSubstr("pad_token_id is 128"));
  EXPECT_THAT(error_with(llama(), "eos_token_id", {1, -2}), HasSubstr("eos_token_id"));
  EXPECT_THAT(error_with(llama(), "rope_scaling", "linear"), HasSubstr("rope_scaling must be a JSON object"));
  EXPECT_THAT(error_of(Json::array()), HasSubstr("must be a JSON object"));
  EXPECT_THROW(ModelShape::parse("{\"model_type\": ", "cut"), DataError);
  EXPECT_LT(error_with(llama(), "hidden_act", std::string(100000, 'x')).size(), 300u) << "errors stay short";
}

TEST(ModelShape, NotesUnknownKeys) {
  Json json = llama();
  json["surprise"] = 1;
  ASSERT_EQ(parse(json).notes.size(), 1u);
  EXPECT_THAT(parse(json).notes[0], HasSubstr("surprise"));
}

TEST(ModelShape, LoadsAFolderOrSaysWhyNot) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "headrace_model_shape";
  std::filesystem::remove_all(folder);
  EXPECT_THROW(ModelShape::load(folder), IoError);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << llama().dump();
  EXPECT_EQ(ModelShape::load(folder).hidden_size, 64);
  std::filesystem::remove(folder / "config.json");
  std::filesystem::create_directories(folder / "config.json");
  EXPECT_THROW(ModelShape::load(folder), IoError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headrace::config
