// What a tokenizer.json may ask for and does not get: refused, with the name of it.
#include <gtest/gtest.h>

#include <functional>

#include "headrace/base/errors.h"
#include "tests/tokenizer/golden.h"

namespace headrace::tokenizer {
namespace {

Json minimal() {
  return parse_json(R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})",
                    "test", "test");
}

void expect_refused(const std::function<void(Json&)>& change, const std::string& what) {
  Json file = minimal();
  change(file);
  try {
    (void)Tokenizer::from_json(file.dump(), "f.json");
    ADD_FAILURE() << "accepted, expected an error with: " << what;
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("f.json"), std::string::npos) << error.what();
  }
}

void expect_refused_at(const std::string& key, const char* value, const std::string& what) {
  expect_refused([&](Json& file) { file[key] = Json::parse(value); }, what);
}

TEST(Refusals, TheMinimalFileIsFine) {
  const auto tokenizer = Tokenizer::from_json(minimal().dump(), "f.json");
  EXPECT_EQ(encoded(tokenizer, "abba"), (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{2, 1, 0}, false), "ab b a");  // no decoder: joined by spaces
}

TEST(Refusals, TopLevel) {
  expect_refused_at("version", R"("2.0")", "version");
  expect_refused_at("truncation", R"({"max_length": 4})", "truncation");
  expect_refused_at("padding", R"({"strategy": "BatchLongest"})", "padding");
  expect_refused_at("novelty", "1", "novelty");
  expect_refused([](Json& file) { file.erase("model"); }, "model");
}

TEST(Refusals, Model) {
  const auto model = [](const char* key, const char* value, const std::string& what) {
    expect_refused([&](Json& file) { file["model"][key] = Json::parse(value); }, what);
  };
  model("type", R"("Unigram")", "Unigram");
  model("dropout", "0.1", "dropout");
  model("continuing_subword_prefix", R"("##")", "continuing_subword_prefix");
  model("end_of_word_suffix", R"("</w>")", "end_of_word_suffix");
  model("new_setting", "true", "new_setting");
  model("unk_token", R"("<unk>")", "<unk>");
  model("byte_fallback", "true", "0 of 256");
  model("merges", R"(["a b c"])", "merge 0");
  model("merges", R"(["a x"])", "\"x\"");
  model("merges", R"([["a", "b", "c"]])", "merge 0");
  model("merges", R"({})", "list");
  model("vocab", R"({"a": 0, "b": 0})", "twice");
  model("vocab", R"({"a": -1})", "-1");
  model("vocab", R"({"a": 4294967296})", "4294967296");
  model("vocab", R"({"a": 1.5})", "1.5");
  model("vocab", "[]", "object");
}

TEST(Refusals, Stages) {
  expect_refused_at("normalizer", R"({"type": "NFKC"})", "NFKC");
  expect_refused_at("normalizer", R"({"type": "Lowercase"})", "Lowercase");
  expect_refused_at("normalizer", R"({"type": "NFC", "extra": 1})", "extra");
  expect_refused_at("normalizer", R"({"type": "Replace", "pattern": {"Regex": "x"}, "content": ""})", "Regex");
  expect_refused_at("normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip"}]})",
                    "normalizer[1]");
  expect_refused_at("pre_tokenizer", R"({"type": "Whitespace"})", "Whitespace");
  expect_refused_at("pre_tokenizer", R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Odd"})", "Odd");
  expect_refused_at("pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "\\bx"}, "behavior": "Isolated"})",
                    "\\b");
  expect_refused_at("pre_tokenizer",
                    R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]})",
                    "after ByteLevel");
  expect_refused_at("pre_tokenizer",
                    R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"},
                        {"type": "Metaspace", "replacement": "_"}]})",
                    "not the first");
  expect_refused_at("pre_tokenizer", R"({"type": "Metaspace", "replacement": "__"})", "one character");
  expect_refused_at("post_processor", R"({"type": "BertProcessing"})", "BertProcessing");
  expect_refused_at("decoder", R"({"type": "WordPiece"})", "WordPiece");
  expect_refused_at("decoder", R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]})",
                    "order");
  expect_refused_at("decoder",
                    R"({"type": "Sequence", "decoders": [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
                    "order");
}

TEST(Refusals, AddedTokens) {
  expect_refused_at("added_tokens", R"([{"id": 3, "content": ""}])", "0 bytes");
  expect_refused_at("added_tokens", R"([{"id": 5, "content": "<x>"}])", "leads to 3");
  expect_refused_at("added_tokens", R"([{"id": 1, "content": "a"}])", "leads to 0");
  expect_refused_at("added_tokens", R"([{"id": 3, "content": "x"}, {"id": 3, "content": "x"}])", "earlier");
  expect_refused_at("added_tokens", R"([{"id": 3, "content": "x", "flavour": "sweet"}])", "flavour");
  expect_refused_at("added_tokens", "{}", "list");
}

TEST(PostProcessor, GivesItsPrefixButNeverAddsIt) {
  Json file = minimal();
  file["added_tokens"] = Json::parse(R"([{"id": 3, "content": "<s>", "special": true}])");
  file["post_processor"] = Json::parse(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}],
          "pair": [], "special_tokens": {}})");
  const auto tokenizer = Tokenizer::from_json(file.dump(), "f.json");
  EXPECT_EQ(tokenizer.prefix_special_ids().size(), 1u);
  EXPECT_EQ(tokenizer.prefix_special_ids()[0], 3);
  EXPECT_EQ(encoded(tokenizer, "a"), std::vector<int32_t>{0});
}

}  // namespace
}  // namespace headrace::tokenizer
