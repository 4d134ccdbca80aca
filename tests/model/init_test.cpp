#include "headrace/model/init.h"

#include <gtest/gtest.h>

#include <cmath>

#include "headrace/model/model.h"
#include "headrace/tensor/flat.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

config::ModelShape shape_of(const char* text) { return config::ModelShape::parse(text, "test"); }

const char* const kGpt2 = R"({"model_type": "gpt2", "vocab_size": 500, "n_embd": 128, "n_layer": 8, "n_head": 4,
                              "n_positions": 64, "initializer_range": 0.04})";
const char* const kOpt = R"({"model_type": "opt", "vocab_size": 500, "hidden_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 4, "ffn_dim": 96, "max_position_embeddings": 32, "init_std": 0.01, "pad_token_id": 3})";

at::Tensor view(const at::Tensor& flat, const BlockSpec& block, Role role) {
  const ParameterSpec* spec = block.find(role);
  return tensor::view_of(flat, spec->offset, spec->shape);
}

at::Tensor initialized(const BlockSpec& block, uint64_t seed) {
  at::Tensor flat = at::full({block.numel}, 7.0);
  initialize(block, seed, flat);
  return flat;
}

// 5 standard errors of the mean and of the deviation of n normal draws.
void expect_normal(const at::Tensor& values, double deviation) {
  const auto n = static_cast<double>(values.numel());
  EXPECT_NEAR(values.mean().item<double>(), 0.0, 5 * deviation / std::sqrt(n));
  EXPECT_NEAR(values.std().item<double>(), deviation, 5 * deviation / std::sqrt(2 * n));
  const double share_within = values.abs().lt(deviation).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(share_within, 0.6827, 5 * std::sqrt(0.2166 / n)) << "not normal";
}

TEST(Init, Gpt2ScalesResidualProjectionsByDepth) {
  const Model model(shape_of(kGpt2));
  const BlockSpec& layer = model.blocks()[3];
  const at::Tensor flat = initialized(layer, 1);
  expect_normal(view(flat, layer, Role::kQkv), 0.04);
  expect_normal(view(flat, layer, Role::kUp), 0.04);
  expect_normal(view(flat, layer, Role::kAttentionOut), 0.04 / 4);  // sqrt(2 * 8 layers)
  expect_normal(view(flat, layer, Role::kDown), 0.04 / 4);
  EXPECT_TRUE(view(flat, layer, Role::kMlpNorm).eq(1).all().item<bool>());
  EXPECT_TRUE(view(flat, layer, Role::kQkvBias).eq(0).all().item<bool>());
  const BlockSpec& embedding = model.blocks()[0];
  expect_normal(view(initialized(embedding, 1), embedding, Role::kPositionEmbedding), 0.04);
}

TEST(Init, PaddingRowIsZero) {
  const Model model(shape_of(kOpt));
  const BlockSpec& embedding = model.blocks()[0];
  const at::Tensor table = view(initialized(embedding, 1), embedding, Role::kTokenEmbedding);
  EXPECT_TRUE(table[3].eq(0).all().item<bool>());
  EXPECT_FALSE(table[2].eq(0).any().item<bool>());
}

TEST(Init, StreamsDependOnSeedAndNameOnly) {
  const Model model(shape_of(kGpt2));
  const at::Tensor first = initialized(model.blocks()[1], 5), second = initialized(model.blocks()[2], 5);
  EXPECT_TRUE(at::equal(initialized(model.blocks()[1], 5), first));
  EXPECT_FALSE(at::equal(initialized(model.blocks()[1], 6), first));
  EXPECT_FALSE(at::equal(second, first)) << "layers must not be copies of each other";
}

TEST(Init, FillsGapsWithZero) {
  const Model model(shape_of(R"({"model_type": "llama", "vocab_size": 33, "hidden_size": 6, "num_hidden_layers": 1,
      "num_attention_heads": 3, "intermediate_size": 7, "max_position_embeddings": 8})"));
  const BlockSpec& layer = model.blocks()[1];
  at::Tensor flat = initialized(layer, 1);
  int64_t covered = 0;
  for (const ParameterSpec& parameter : layer.parameters) {
    tensor::view_of(flat, parameter.offset, parameter.shape).zero_();
    covered += parameter.numel;
  }
  EXPECT_LT(covered, layer.numel);
  EXPECT_EQ(flat.abs().sum().item<float>(), 0.0F);
}

TEST(Spec, CountsParametersAndDecay) {
  const Model model(shape_of(kGpt2));
  EXPECT_EQ(model.num_blocks(), 10);
  const int64_t layer = 12 * 128 * 128 + 13 * 128;
  EXPECT_EQ(model.num_parameters(), 500 * 128 + 64 * 128 + 8 * layer + 2 * 128);
  for (const BlockSpec& block : model.blocks()) {
    for (const ParameterSpec& parameter : block.parameters) {
      EXPECT_EQ(parameter.decays, parameter.shape.size() > 1) << parameter.name;
    }
  }
  EXPECT_EQ(model.blocks()[1].find(Role::kUp)->layout, Layout::kInOut) << "gpt2 stores [in, out]";
}

}  // namespace
}  // namespace headrace::model
