#include "headrace/safetensors/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "tests/safetensors/build_file.h"
#include "tests/support/temp_folder.h"

namespace headrace::safetensors {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file with one U8 tensor for each letter of `names`, its value the letter in upper case.
std::string letters(const std::string& names) {
  std::string header, data;
  for (size_t i = 0; i < names.size(); ++i) {
    header += (i == 0 ? "{" : ",") +
              entry(names.substr(i, 1), "U8", "[1]", static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
    data += static_cast<char>(names[i] - 'a' + 'A');
  }
  return file_of(header + "}", data);
}

void put_index(const TempFolder& folder, const std::string& weight_map) {
  put_file(folder / "model.safetensors.index.json",
           "{\"metadata\":{\"total_size\":1},\"weight_map\":" + weight_map + "}");
}

void expect_refused(const fs::path& folder, const std::string& fact) {
  try {
    ModelFolder::open(folder);
    ADD_FAILURE() << "accepted; expected: " << fact;
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr(fact));
  }
}

TEST(ModelFolder, OpensASingleFile) {
  TempFolder folder;
  put_file(folder / "model.safetensors", letters("cab"));
  const ModelFolder model = ModelFolder::open(folder.path());
  EXPECT_THAT(model.names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(text_in(model.bytes("c")), "C");
  EXPECT_EQ(model.info("b").dtype, DType::kU8);
  EXPECT_TRUE(model.has("a"));
  EXPECT_FALSE(model.has("d"));
  model.done_with("a");
  model.done_with("d");
  EXPECT_EQ(text_in(model.bytes("a")), "A");
}

TEST(ModelFolder, OpensShardsAndReportsUnlistedTensors) {
  TempFolder folder;
  put_file(folder / "one.safetensors", letters("cxa"));
  put_file(folder / "two.safetensors", letters("bax"));
  put_index(folder, R"({"a":"one.safetensors","b":"two.safetensors","c":"one.safetensors"})");
  const ModelFolder model = ModelFolder::open(folder.path());
  EXPECT_THAT(model.names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(text_in(model.bytes("a")), "A");
  EXPECT_EQ(text_in(model.bytes("b")), "B");
  EXPECT_THAT(model.unlisted(), ElementsAre("a", "x")) << "two.safetensors holds a second 'a'";
  EXPECT_EQ(model.files().size(), 2U);
}

TEST(ModelFolder, PrefersTheSingleFileAsTransformersDoes) {
  TempFolder folder;
  put_file(folder / "model.safetensors", letters("a"));
  put_index(folder, R"({"b":"none.safetensors"})");
  EXPECT_THAT(ModelFolder::open(folder.path()).names(), ElementsAre("a"));
}

TEST(ModelFolder, NamesTheMissingTensor) {
  TempFolder folder;
  put_file(folder / "model.safetensors", letters("a"));
  const ModelFolder model = ModelFolder::open(folder.path());
  EXPECT_THROW(model.info("lm_head.weight"), DataError);
  EXPECT_THROW(model.bytes("lm_head.weight"), DataError);
}

TEST(ModelFolder, RefusesAnIndexThatDoesNotMatchItsShards) {
  TempFolder folder;
  put_file(folder / "one.safetensors", letters("a"));
  put_index(folder, R"({"a":"one.safetensors","b":"one.safetensors"})");
  expect_refused(folder.path(), "puts tensor 'b' into 'one.safetensors', which does not hold it");
  put_index(folder, R"({"a":"one.safetensors","b":"two.safetensors"})");
  expect_refused(folder.path(), "names the file 'two.safetensors', which is not there");
  put_file(folder / "two.safetensors", letters("b").substr(0, 30));
  expect_refused(folder.path(), "two.safetensors: ");
}

TEST(ModelFolder, RefusesShardsOutsideTheFolder) {
  TempFolder folder;
  fs::create_directory(folder / "model");
  put_file(folder / "one.safetensors", letters("a"));
  const auto index = [&](const std::string& file) {
    put_file(folder / "model/model.safetensors.index.json", R"({"weight_map":{"a":")" + file + R"("}})");
  };
  index("../one.safetensors");
  expect_refused(folder / "model", "holds '..'");
  index((folder / "one.safetensors").native());
  expect_refused(folder / "model", "is absolute");
  fs::create_symlink(folder / "one.safetensors", folder / "model/one.safetensors");
  index("one.safetensors");
  expect_refused(folder / "model", "outside");
  index("");
  expect_refused(folder / "model", "is not a file name");
}

TEST(ModelFolder, RefusesAMalformedIndex) {
  TempFolder folder;
  for (const std::string text : {"[]", "{}", "{\"weight_map\":[]}", "{\"weight_map\":{\"a\":1}}", "{", ""}) {
    put_file(folder / "model.safetensors.index.json", text);
    expect_refused(folder.path(), "model.safetensors.index.json: ");
  }
}

TEST(ModelFolder, SaysWhatToDoWithoutSafetensors) {
  TempFolder folder;
  expect_refused(folder / "none", "there is no folder");
  expect_refused(folder.path(), "Is it a Hugging Face model folder");
  put_file(folder / "model-q4.gguf", "GGUF");
  expect_refused(folder.path(), "tools/gguf_to_hf.py");
  put_file(folder / "pytorch_model.bin", "");
  expect_refused(folder.path(), "pickled weights");
  expect_refused(folder.path(), "save_pretrained");
}

}  // namespace
}  // namespace headrace::safetensors
