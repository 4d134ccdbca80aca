#include "headrace/checkpoint/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/checkpoint/import.h"
#include "headrace/model/init.h"
#include "headrace/os/file.h"
#include "headrace/safetensors/model_folder.h"
#include "headrace/tensor/torch.h"
#include "tests/support/temp_folder.h"

namespace headrace::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kConfig = R"({"zeta": 1, "model_type": "llama", "vocab_size": 13, "hidden_size": 8,
    "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 16,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16"})";

void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

class Export : public ::testing::Test {
 protected:
  Export() : source_(root_ / "source"), out_(root_ / "out"), model_(config::ModelShape::parse(kConfig, "test")) {
    fs::create_directories(source_);
    put(source_ / "config.json", kConfig);
    put(source_ / "tokenizer.json", "{\"a\": 1}");
    put(source_ / "generation_config.json", "{}");
    put(source_ / "training_args.bin", "never carried");
    for (const model::BlockSpec& block : model_.blocks()) {
      flat_.push_back(at::empty({block.numel}));
      model::initialize(block, 3, flat_.back());
    }
  }

  void export_to(const fs::path& out, ExportDtype dtype = ExportDtype::kFloat32) {
    export_model(source_, out, model_, flat_, dtype);
  }
  std::vector<at::Tensor> imported() const {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& tensor : flat_) flat.push_back(at::empty_like(tensor));
    import_weights(safetensors::ModelFolder::open(out_), model_, flat);
    return flat;
  }
  std::string error_of(const fs::path& out) {
    try {
      export_to(out);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  const TempFolder root_;  // tests run side by side
  fs::path source_, out_;
  model::Model model_;
  std::vector<at::Tensor> flat_;
};

TEST_F(Export, ComesBackBitForBit) {
  export_to(out_);
  const std::vector<at::Tensor> flat = imported();
  for (size_t i = 0; i < flat.size(); ++i) EXPECT_TRUE(at::equal(flat[i], flat_[i])) << "block " << i;
  EXPECT_FALSE(safetensors::ModelFolder::open(out_).has("lm_head.weight")) << "tied weights are written once";
}

TEST_F(Export, RoundsToTheChosenTypeAndSaysSoInTheConfig) {
  export_to(out_, ExportDtype::kFloat16);
  EXPECT_EQ(safetensors::ModelFolder::open(out_).info("model.norm.weight").dtype, safetensors::DType::kF16);
  const std::vector<at::Tensor> flat = imported();
  for (size_t i = 0; i < flat.size(); ++i) EXPECT_TRUE(at::equal(flat[i], flat_[i].to(at::kHalf).to(at::kFloat)));
  const std::string config = os::read_file(out_ / "config.json");
  EXPECT_EQ(Json::parse(config)["torch_dtype"], "float16");
  EXPECT_THAT(config, ::testing::StartsWith("{\n  \"zeta\"")) << "keys keep their order";
  EXPECT_FALSE(Json::parse(config).contains("dtype"));
  put(source_ / "config.json", R"({"dtype": "float32"})");
  export_to(out_, ExportDtype::kBFloat16);
  EXPECT_EQ(Json::parse(os::read_file(out_ / "config.json")), Json({{"dtype", "bfloat16"}}));
}

TEST_F(Export, RefusesFloat16ThatWouldOverflow) {
  flat_[1][0] = 1e5F;
  EXPECT_THROW(export_to(out_, ExportDtype::kFloat16), ConfigError);
  EXPECT_FALSE(fs::exists(out_));
  EXPECT_FALSE(fs::exists(root_ / "out.partial")) << "nothing is left behind";
  export_to(out_, ExportDtype::kBFloat16);
}

TEST_F(Export, CarriesTokenizerFilesOnly) {
  export_to(out_ / "");  // a closing slash changes nothing
  EXPECT_EQ(os::read_file(out_ / "tokenizer.json"), "{\"a\": 1}");
  EXPECT_TRUE(fs::exists(out_ / "generation_config.json"));
  EXPECT_FALSE(fs::exists(out_ / "training_args.bin"));
}

TEST_F(Export, ReplacesAnEarlierExportWhole) {
  put(source_ / "merges.txt", "x");
  export_to(out_);
  fs::remove(source_ / "merges.txt");
  flat_[1].mul_(2.0);
  export_to(out_);
  EXPECT_TRUE(at::equal(imported()[1], flat_[1]));
  EXPECT_FALSE(fs::exists(out_ / "merges.txt"));
}

TEST_F(Export, RefusesFoldersThatAreNotItsOwn) {
  EXPECT_THAT(error_of(source_), HasSubstr("is the folder that the model came from"));
  fs::create_directories(out_);
  put(out_ / "thesis.tex", "precious");
  EXPECT_THAT(error_of(out_), HasSubstr("it holds thesis.tex"));
  EXPECT_EQ(os::read_file(out_ / "thesis.tex"), "precious");
  fs::remove(out_ / "thesis.tex");
  put(out_ / "model.safetensors", "not ours");
  EXPECT_THAT(error_of(out_), HasSubstr("its weights were not written by headrace"));
  put(root_ / "file", "x");
  EXPECT_THAT(error_of(root_ / "file"), HasSubstr("it is a file"));
}

TEST(ExportDtypeNames, AreParsed) {
  EXPECT_EQ(parse_export_dtype("bf16"), ExportDtype::kBFloat16);
  EXPECT_EQ(parse_export_dtype("float32"), ExportDtype::kFloat32);
  EXPECT_THROW(parse_export_dtype("int8"), ConfigError);
}

}  // namespace
}  // namespace headrace::checkpoint
