#include "headrace/store/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/store/digest.h"

namespace headrace::store {
namespace {

using ::testing::HasSubstr;

const std::string kHash(32, 'a');

Manifest example() {
  return {123,
          "2025-01-31T17:03:59Z",
          {{"tensors-00001-of-00001.safetensors", int64_t{1} << 40, kHash}, {"state.json", 2, digest_of("{}")}}};
}

std::string refusal_of(const std::string& text) {
  try {
    parse_manifest(text, "m.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

// An example with one thing replaced, under the right seal.
std::string refusal_with(const std::string& from, const std::string& to) {
  std::string body = manifest_text(example());
  body.resize(body.rfind("\n  \"manifest_xxh3_128"));
  const size_t at = body.find(from);
  if (at == std::string::npos) return "no " + from + " in " + body;
  return refusal_of(sealed(body.replace(at, from.size(), to)));
}

// Values of the reference implementation (xxhsum -H2).
TEST(Digest, IsXxh3Of128Bits) {
  EXPECT_EQ(digest_of(""), "99aa06d3014798d86001c324468d497f");
  Digest pieces;
  const std::string text(100'000, 'x');
  for (size_t at = 0; at < text.size(); at += 777) {
    pieces.add(std::as_bytes(std::span(text)).subspan(at, std::min<size_t>(777, text.size() - at)));
  }
  EXPECT_EQ(pieces.hex(), digest_of(text));
}

TEST(Manifest, GoesBothWays) {
  EXPECT_EQ(parse_manifest(manifest_text(example()), "m.json"), example());
  EXPECT_EQ(example().total_bytes(), (int64_t{1} << 40) + 2);
}

TEST(Manifest, IsOrdinaryJson) {
  const Json json = Json::parse(manifest_text(example()));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["step"], 123);
  EXPECT_EQ(json["files"][1]["name"], "state.json");
}

TEST(Manifest, NotOneBitCanChange) {
  const std::string text = manifest_text(example());
  for (size_t at = 0; at < text.size(); ++at) {
    for (const int bit : {0, 3, 5}) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_THAT(refusal_of(changed), HasSubstr("m.json: ")) << at;
    }
  }
}

TEST(Manifest, NorCanItsEndBeMissing) {
  const std::string text = manifest_text(example());
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_THAT(refusal_of(text.substr(0, length)), HasSubstr("cut short")) << length;
  }
  EXPECT_THAT(refusal_of(text + "\n"), HasSubstr("does not end with its own hash"));
}

TEST(Manifest, SaysBothHashes) {
  std::string text = manifest_text(example());
  const std::string seal = digest_of(text.substr(0, text.rfind("\n  \"manifest_xxh3_128")));
  text[text.find("123")] = '9';
  EXPECT_THAT(refusal_of(text), HasSubstr("says '" + seal + "', its contents give "));
}

TEST(Manifest, RefusesNamesThatAreNoFileNames) {
  for (const std::string name : {"", "..", ".", "../state.json", "/etc/passwd", "a/b", "a\\\\b", ".hidden", "a b",
                                 "manifest.json", "a\\u0000b", "\\u00e9"}) {
    EXPECT_THAT(refusal_with("tensors-00001-of-00001.safetensors", name), HasSubstr("names the file")) << name;
  }
  EXPECT_THAT(refusal_with("tensors-00001-of-00001.safetensors", std::string(129, 'a')), HasSubstr("names the file"));
  EXPECT_THAT(refusal_with("tensors-00001-of-00001.safetensors", "state.json"), HasSubstr("state.json twice"));
  EXPECT_THAT(refusal_with("state.json", "other.json"), HasSubstr("does not name state.json"));
}

TEST(Manifest, RefusesSizesAndHashesThatCannotBe) {
  for (const std::string size : {"-1", "1.5", "1e3", "\"7\"", "null", "9223372036854775808", "1e300"}) {
    EXPECT_THAT(refusal_with("1099511627776", size), HasSubstr("not a count")) << size;
  }
  EXPECT_THAT(refusal_with("1099511627776", "9223372036854775807"), HasSubstr("more than 2^63 bytes together"));
  EXPECT_THAT(refusal_with(kHash, std::string(31, 'a')), HasSubstr("32 hexadecimal digits"));
  EXPECT_THAT(refusal_with(kHash, std::string(32, 'A')), HasSubstr("32 hexadecimal digits"));
}

TEST(Manifest, RefusesOtherFormsAndFormats) {
  EXPECT_THAT(refusal_with("\"format\": 1", "\"format\": 2"), HasSubstr("has format 2; this version reads format 1"));
  EXPECT_THAT(refusal_with("\"format\"", "\"fermat\""), HasSubstr("lacks \"format\""));
  EXPECT_THAT(refusal_with("\"step\": 123", "\"step\": -1"), HasSubstr("'-1', not a count"));
  EXPECT_THAT(refusal_with("\"files\": [", "\"files\": 5, \"other\": ["), HasSubstr("\"files\" is no list"));
  EXPECT_THAT(refusal_with("\"files\": [", "\"files\": [3, "), HasSubstr("is no object"));
  EXPECT_THAT(refusal_of(sealed("[1,")), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal_of(std::string(kMaxManifestBytes + 1, ' ')), HasSubstr("at most 4194304"));
}

TEST(Manifest, OfTooManyFilesIsNotWritten) {
  Manifest manifest = example();
  for (int64_t i = 0; i < 60'000; ++i) manifest.files.push_back({"f" + std::to_string(i), 1, kHash});
  EXPECT_THROW(manifest_text(manifest), ConfigError);
}

}  // namespace
}  // namespace headrace::store
