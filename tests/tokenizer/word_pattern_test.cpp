#include "headrace/tokenizer/word_pattern.h"

#include <gtest/gtest.h>

#include <array>

#include "headrace/base/rng.h"
#include "headrace/tokenizer/regex.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

// Scripts whose characters were the same in Unicode 13, so that PCRE2's tables and ours agree.
std::string random_text(Rng& rng) {
  constexpr std::array<std::pair<uint32_t, uint32_t>, 9> kRanges = {{{0x20, 0x7e},
                                                                     {0x20, 0x7e},
                                                                     {0xa0, 0x17f},
                                                                     {0x391, 0x3a1},
                                                                     {0x410, 0x44f},
                                                                     {0x5d0, 0x5ea},
                                                                     {0x660, 0x669},
                                                                     {0x2160, 0x2170},
                                                                     {0x4e00, 0x9f00}}};
  constexpr std::array<std::string_view, 22> kPieces = {
      " ",   "  ",  "\n",  "\r\n", "\t", "\xC2\xA0", "\xE3\x80\x80", "'s",    "'S", "'ll",          "'LL",
      "'lL", "'re", "'ve", "'",    "''", "'d",       "'\xC5\xBF",    "12345", "1",  "\xE1\xA0\x8E", "\xC2\x85"};
  std::string text;
  for (uint64_t i = 1 + rng.below(14); i > 0; --i) {
    if (rng.below(2) == 0) {
      text += kPieces[rng.below(kPieces.size())];
    } else {
      const auto [low, high] = kRanges[rng.below(kRanges.size())];
      for (uint64_t k = rng.below(5); k > 0; --k)
        append_utf8(text, low + static_cast<uint32_t>(rng.below(high - low + 1)));
    }
  }
  return text;
}

class WordPatterns : public testing::TestWithParam<WordPattern> {};

TEST_P(WordPatterns, CutsLikeTheRegex) {
  const uint64_t seed = 20261130;
  Rng rng(seed);
  const Regex regex = Regex::compile(regex_of(GetParam()), "test");
  RegexMemory memory;
  for (int round = 0; round < 60000; ++round) {
    const std::string text = random_text(rng);
    for (size_t begin = 0; begin < text.size();) {
      const auto match = regex.find(text, begin, memory);
      ASSERT_TRUE(match.has_value()) << "seed " << seed << " round " << round;
      ASSERT_EQ(match->first, begin) << "seed " << seed << " round " << round << ": a character is left out";
      ASSERT_EQ(word_end(GetParam(), text, begin), match->second)
          << "seed " << seed << " round " << round << ": '" << text << "' at " << begin;
      begin = match->second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WordPatterns,
                         testing::Values(WordPattern::kGpt2, WordPattern::kLlama3, WordPattern::kQwen2));

TEST(WordPattern, IsKnownByItsExactText) {
  EXPECT_EQ(word_pattern_of(regex_of(WordPattern::kLlama3)), WordPattern::kLlama3);
  EXPECT_FALSE(word_pattern_of(std::string(regex_of(WordPattern::kGpt2)) + " ").has_value());
  EXPECT_FALSE(word_pattern_of("\\s+").has_value());
}

}  // namespace
}  // namespace headrace::tokenizer
