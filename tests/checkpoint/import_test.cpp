#include "headrace/checkpoint/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "headrace/base/errors.h"
#include "headrace/safetensors/model_folder.h"
#include "headrace/safetensors/writer.h"
#include "headrace/tensor/dtype.h"
#include "headrace/tensor/flat.h"
#include "headrace/tensor/torch.h"
#include "tests/support/temp_folder.h"

namespace headrace::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using TensorMap = std::map<std::string, at::Tensor>;

config::ModelShape shape_of(const std::string& family, bool is_tied) {
  const std::string tied = std::string(R"(, "tie_word_embeddings": )") + (is_tied ? "true" : "false") + "}";
  if (family == "gpt2") {
    return config::ModelShape::parse(R"({"model_type": "gpt2", "vocab_size": 11, "n_embd": 6, "n_layer": 1, "n_head": 2,
                                         "n_positions": 5)" +
                                         tied,
                                     "test");
  }
  return config::ModelShape::parse(R"({"model_type": ")" + family + R"(", "vocab_size": 11, "hidden_size": 6,
      "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 7, "ffn_dim": 7,
      "max_position_embeddings": 5)" + tied,
                                   "test");
}

class Import : public ::testing::Test {
 protected:
  // Every parameter of the model, values that bf16 and fp16 hold exactly.
  static TensorMap tensors_of(const model::Model& model) {
    TensorMap tensors;
    int64_t next = 1;
    for (const model::BlockSpec& block : model.blocks()) {
      for (const model::ParameterSpec& parameter : block.parameters) {
        tensors[parameter.name] =
            at::arange(parameter.numel, at::kFloat).remainder(64).add(next++).view(parameter.shape);
      }
    }
    return tensors;
  }

  void write(const TensorMap& tensors, int64_t max_shard_bytes = 1 << 30) {
    fs::remove_all(folder_);
    std::vector<safetensors::PlannedTensor> plan;
    for (const auto& [name, tensor] : tensors) {
      plan.push_back({name, tensor::dtype_of(tensor.scalar_type()), tensor.sizes().vec()});
    }
    safetensors::WriterOptions options;
    options.max_shard_bytes = max_shard_bytes;
    safetensors::Writer writer(folder_, plan, options);
    for (const auto& [name, tensor] : tensors) {
      writer.write(name, {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
    }
    writer.finish();
  }

  std::vector<at::Tensor> import(const model::Model& model) {
    std::vector<at::Tensor> flat;
    for (const model::BlockSpec& block : model.blocks()) flat.push_back(at::full({block.numel}, -1.0));
    import_weights(safetensors::ModelFolder::open(folder_), model, flat);
    return flat;
  }

  void expect_imported(const model::Model& model, const TensorMap& expected) {
    const std::vector<at::Tensor> flat = import(model);
    for (int64_t i = 0; i < model.num_blocks(); ++i) {
      at::Tensor rest = flat[i].clone();
      for (const model::ParameterSpec& parameter : model.blocks()[i].parameters) {
        const at::Tensor view = tensor::view_of(flat[i], parameter.offset, parameter.shape);
        EXPECT_TRUE(at::equal(view, expected.at(parameter.name))) << parameter.name;
        tensor::view_of(rest, parameter.offset, parameter.shape).zero_();
      }
      EXPECT_TRUE(rest.eq(0).all().item<bool>()) << "gaps of block " << i;
    }
  }

  std::string error_of(const model::Model& model) {
    try {
      import(model);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }

  const TempFolder temporary_;  // tests run side by side
  const fs::path folder_ = temporary_ / "model";
};

TEST_F(Import, ReadsEveryFloatTypeWholeAndSharded) {
  const model::Model model(shape_of("qwen3", false));
  const TensorMap expected = tensors_of(model);
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const int64_t max_shard_bytes : {int64_t{1} << 30, int64_t{300}}) {
      TensorMap tensors;
      for (const auto& [name, tensor] : expected) tensors[name] = tensor.to(type);
      write(tensors, max_shard_bytes);
      expect_imported(model, expected);
    }
  }
}

TEST_F(Import, ConvertsTensorsLongerThanOneChunk) {
  const model::Model model(config::ModelShape::parse(
      R"({"model_type": "llama", "vocab_size": 70001, "hidden_size": 16, "num_hidden_layers": 1,
          "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 5, "tie_word_embeddings": true})",
      "test"));
  const TensorMap expected = tensors_of(model);
  TensorMap tensors;
  for (const auto& [name, tensor] : expected) tensors[name] = tensor.to(at::kBFloat16);
  write(tensors);
  expect_imported(model, expected);
}

TEST_F(Import, AcceptsNamesOfTheBareDecoderAndOldBuffers) {
  struct Case {
    const char *family, *prefix, *buffer;
  };
  for (const Case& c : {Case{"gpt2", "transformer.", "h.0.attn.bias"}, Case{"opt", "model.", nullptr},
                        Case{"llama", "model.", "layers.0.self_attn.rotary_emb.inv_freq"}}) {
    const model::Model model(shape_of(c.family, true));
    const TensorMap expected = tensors_of(model);
    TensorMap tensors;
    for (const auto& [name, tensor] : expected) tensors[name.substr(std::string(c.prefix).size())] = tensor;
    if (c.buffer != nullptr) tensors[c.buffer] = at::ones({3});
    write(tensors);
    expect_imported(model, expected);
  }
}

TEST_F(Import, TiedHeadMustEqualTheEmbedding) {
  const model::Model model(shape_of("llama", true));
  TensorMap tensors = tensors_of(model);
  const TensorMap expected = tensors;
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone();
  write(tensors);
  expect_imported(model, expected);
  tensors["lm_head.weight"][0][0] += 1;
  write(tensors);
  EXPECT_THAT(error_of(model), HasSubstr("lm_head.weight (config.json ties it to model.embed_tokens.weight"));
}

TEST_F(Import, NamesEverythingThatIsWrongAtOnce) {
  const model::Model model(shape_of("llama", false));
  TensorMap tensors = tensors_of(model);
  tensors.erase("model.norm.weight");
  tensors.erase("lm_head.weight");
  tensors["model.layers.1.mlp.up_proj.weight"] = at::ones({7, 6});
  tensors["model.layers.0.mlp.up_proj.weight"] = at::ones({6, 7});
  tensors["model.layers.0.self_attn.q_proj.weight"] = at::ones({6, 6}, at::kLong);
  tensors["embed_tokens.weight"] = tensors["model.embed_tokens.weight"];
  write(tensors);
  EXPECT_THAT(error_of(model),
              AllOf(HasSubstr("2 missing: lm_head.weight, model.norm.weight"),
                    HasSubstr("\"model.layers.1.mlp.up_proj.weight\""),
                    HasSubstr("\"model.layers.0.mlp.up_proj.weight\" is [6, 7] and must be [7, 6]"),
                    HasSubstr("q_proj.weight\" is I64"), HasSubstr("a second model.embed_tokens.weight")));
}

TEST_F(Import, KeepsErrorsShort) {
  const model::Model model(shape_of("llama", false));
  TensorMap tensors = tensors_of(model);
  for (int i = 0; i < 500; ++i) tensors["stranger." + std::to_string(i)] = at::ones({1});
  write(tensors);
  EXPECT_THAT(error_of(model), AllOf(HasSubstr("500 unexpected"), Not(HasSubstr("stranger.499"))));
}

}  // namespace
}  // namespace headrace::checkpoint
