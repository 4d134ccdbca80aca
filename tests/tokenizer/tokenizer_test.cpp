#include "headrace/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"
#include "tests/tokenizer/golden.h"

namespace headrace::tokenizer {
namespace {

class GoldenTokenizer : public testing::TestWithParam<std::string> {
 protected:
  Tokenizer tokenizer_ = Tokenizer::load(golden_folder(GetParam()));
  Json expected_ = read_golden(GetParam() + "/expected.json");
  std::vector<std::string> texts_ = read_golden("texts.json")["texts"];
};

TEST_P(GoldenTokenizer, EncodesLikeTheLibrary) {
  ASSERT_EQ(texts_.size(), expected_["texts"].size());
  EXPECT_EQ(tokenizer_.vocabulary_size(), expected_["vocabulary"].get<int64_t>());
  std::vector<int32_t> all;
  std::vector<int32_t> all_expected;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const auto want = expected_["texts"][i]["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(encoded(tokenizer_, texts_[i]), want) << "text " << i << ": " << Json(texts_[i]).dump();
    EXPECT_EQ(encoded(tokenizer_, texts_[i]), want) << "text " << i << " from the cache";
    EXPECT_EQ(tokenizer_.encode_with_offsets(texts_[i]).ids, want) << "text " << i << " with offsets";
    tokenizer_.encode(texts_[i], all);
    all_expected.insert(all_expected.end(), want.begin(), want.end());
  }
  EXPECT_EQ(all, all_expected) << "encode() must append";
}

TEST_P(GoldenTokenizer, DecodesLikeTheLibrary) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    const Json& row = expected_["texts"][i];
    const std::string want = row.contains("decoded") ? row["decoded"].get<std::string>() : texts_[i];
    EXPECT_EQ(tokenizer_.decode(row["ids"].get<std::vector<int32_t>>(), false), want) << "text " << i;
  }
  const Json fractions = read_golden("texts.json")["fractions"];
  ASSERT_EQ(fractions.size(), expected_["decoded"].size());
  for (size_t i = 0; i < fractions.size(); ++i) {
    std::vector<int32_t> ids;
    for (const Json& fraction : fractions[i]) {
      ids.push_back(static_cast<int32_t>(fraction.get<int64_t>() * tokenizer_.vocabulary_size() / 1'000'000));
    }
    EXPECT_EQ(tokenizer_.decode(ids, false), expected_["decoded"][i][0].get<std::string>()) << "ids " << i;
    EXPECT_EQ(tokenizer_.decode(ids, true), expected_["decoded"][i][1].get<std::string>()) << "ids " << i;
  }
}

TEST_P(GoldenTokenizer, StreamsWhatItDecodes) {
  Rng rng(17);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> ids(1 + rng.below(30));
    for (auto& id : ids) id = static_cast<int32_t>(rng.below(static_cast<uint64_t>(tokenizer_.vocabulary_size())));
    StreamDecoder stream(tokenizer_, true);
    std::string text;
    for (const int32_t id : ids) {
      const std::string piece = stream.push(id);
      EXPECT_NO_THROW((void)Json(piece).dump()) << "a piece must be whole characters";
      text += piece;
    }
    EXPECT_EQ(text + stream.finish(), tokenizer_.decode(ids, true)) << "round " << round;
  }
}

// Widens to whole characters, as the library's offsets are.
void widen(std::string_view text, size_t& begin, size_t& end) {
  const auto continues = [&](size_t i) { return i < text.size() && (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80; };
  while (begin > 0 && continues(begin)) --begin;
  while (continues(end)) ++end;
}

TEST_P(GoldenTokenizer, OffsetsNameTheBytes) {
  const bool has_ranges = expected_["texts"][0].contains("ranges");
  for (size_t i = 0; i < texts_.size(); ++i) {
    const std::string& text = texts_[i];
    const auto encoding = tokenizer_.encode_with_offsets(text);
    ASSERT_EQ(encoding.begins.size(), encoding.ids.size());
    ASSERT_EQ(encoding.ends.size(), encoding.ids.size());
    size_t expected_end = 0;
    for (size_t k = 0; k < encoding.ids.size(); ++k) {
      size_t begin = encoding.begins[k];
      size_t end = encoding.ends[k];
      ASSERT_LE(begin, end) << "text " << i << " token " << k;
      ASSERT_LE(end, text.size()) << "text " << i << " token " << k;
      if (k > 0) {
        ASSERT_GE(begin, encoding.begins[k - 1]) << "text " << i << " token " << k;
      }
      if (!has_ranges) continue;
      const Json& ranges = expected_["texts"][i]["ranges"];
      const size_t expected_begin = expected_end + static_cast<size_t>(ranges[2 * k].get<int64_t>());
      expected_end = expected_begin + ranges[2 * k + 1].get<size_t>();
      widen(text, begin, end);
      ASSERT_EQ(begin, expected_begin) << "text " << i << " token " << k;
      ASSERT_EQ(end, expected_end) << "text " << i << " token " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenTokenizer, testing::ValuesIn(golden_names()),
                         [](const auto& param) { return param.param; });

TEST(Tokenizer, OffsetsSpellTheTokensOfByteLevelText) {
  const auto tokenizer = Tokenizer::load(golden_folder("gpt2"));
  const std::string text = "Größe 世界 <|endoftext|> 👩‍👧 it's 12";
  const auto encoding = tokenizer.encode_with_offsets(text);
  size_t at = 0;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    EXPECT_EQ(encoding.begins[i], at);  // no byte is left out, none is counted twice
    at = encoding.ends[i];
    const std::vector<int32_t> one = {encoding.ids[i]};
    const std::string_view bytes = std::string_view(text).substr(encoding.begins[i], at - encoding.begins[i]);
    const std::string decoded = tokenizer.decode(one, false);
    if (decoded.find("\uFFFD") == std::string::npos) {
      EXPECT_EQ(decoded, bytes);
    }
  }
  EXPECT_EQ(at, text.size());
}

TEST(Tokenizer, OffsetsReferToTheTextBeforeNormalization) {
  const auto tokenizer = Tokenizer::load(golden_folder("qwen2"));
  const std::string text = "xe\u0301y";  // four characters, three after NFC
  const auto encoding = tokenizer.encode_with_offsets(text);
  EXPECT_EQ(encoding.ids, encoded(tokenizer, "x\u00e9y"));
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const bool in_rewritten = encoding.begins[i] >= 1 && encoding.ends[i] <= 4;
    EXPECT_TRUE(in_rewritten || encoding.ends[i] <= 1 || encoding.begins[i] >= 4 || encoding.ids.size() < 3) << i;
  }
  EXPECT_EQ(encoding.begins.front(), 0u);
  EXPECT_EQ(encoding.ends.back(), text.size());
}

TEST(Tokenizer, AddedPrefixHasNoBytes) {
  const auto tokenizer = Tokenizer::load(golden_folder("llama2"));
  const auto encoding = tokenizer.encode_with_offsets("\u4e16");  // no token of its own: the prefix stands alone
  ASSERT_EQ(encoding.ids.size(), 4u);
  EXPECT_EQ(encoding.begins, (std::vector<uint32_t>{0, 0, 1, 2}));
  EXPECT_EQ(encoding.ends, (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8AndLeavesTheIdsAlone) {
  const auto tokenizer = Tokenizer::load(golden_folder("gpt2"));
  for (const std::string bad : {"abc\xFF", "abc\xC3", "abc\xED\xA0\x80", "abc\xC0\xAF", "abc\xF4\x90\x80\x80"}) {
    std::vector<int32_t> ids = {7};
    try {
      tokenizer.encode(bad, ids);
      FAIL() << "no error";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("byte 3"), std::string::npos) << error.what();
    }
    EXPECT_EQ(ids, std::vector<int32_t>{7});
  }
}

TEST(Tokenizer, KnowsItsTokens) {
  const auto tokenizer = Tokenizer::load(golden_folder("smollm2") + "/tokenizer.json");
  const auto end = tokenizer.token_to_id("<|im_end|>");
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(tokenizer.is_special(*end));
  EXPECT_EQ(tokenizer.id_to_token(*end), "<|im_end|>");
  EXPECT_FALSE(tokenizer.is_special(*tokenizer.token_to_id("a")));
  EXPECT_FALSE(tokenizer.token_to_id("no such token").has_value());
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_EQ(tokenizer.id_to_token(1 << 20), "");
  const std::vector<int32_t> padded = {*tokenizer.token_to_id("a"), -1, 1 << 20, *end};
  EXPECT_EQ(tokenizer.decode(padded, true), "a");
  EXPECT_EQ(tokenizer.decode(padded, false), "a<|im_end|>");
}

TEST(Tokenizer, EncodesFromManyThreadsAlike) {
  const auto tokenizer = Tokenizer::load(golden_folder("tekken"));
  const std::vector<std::string> texts = read_golden("texts.json")["texts"];
  std::vector<std::vector<int32_t>> results(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] {
        for (int round = 0; round < 5; ++round) {
          for (const auto& text : texts) tokenizer.encode(text, result);
        }
      });
    }
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(Tokenizer, NamesAMissingFile) {
  EXPECT_THROW(Tokenizer::load("/nonexistent/model"), IoError);
  EXPECT_THROW(Tokenizer::load(std::string(HEADRACE_SOURCE_DIR) + "/tests"), IoError);
}

}  // namespace
}  // namespace headrace::tokenizer
