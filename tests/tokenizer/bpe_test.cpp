#include "headrace/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <chrono>

#include "headrace/base/rng.h"
#include "tests/tokenizer/golden.h"

namespace headrace::tokenizer {
namespace {

// One step after the other by definition: the lowest rank anywhere, the leftmost of equals.
std::vector<int32_t> merged_by_definition(const Json& model, const std::string& word) {
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  while (true) {
    size_t best = model["merges"].size();
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (model["merges"][rank][0] == symbols[i] && model["merges"][rank][1] == symbols[i + 1]) {
          best = rank;
          best_at = i;
        }
      }
    }
    if (best == model["merges"].size()) break;
    symbols[best_at] += symbols[best_at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
  std::vector<int32_t> ids;
  for (const auto& symbol : symbols) ids.push_back(model["vocab"][symbol].get<int32_t>());
  return ids;
}

TEST(Bpe, MergesShortAndLongWordsByTheSameRule) {
  const Json model = parse_json(R"({"type": "BPE",
    "vocab": {"a": 0, "b": 1, "aa": 2, "ab": 3, "aab": 4, "ba": 5, "aaaa": 6, "bab": 7, "abba": 8},
    "merges": [["a", "a"], ["a", "b"], ["b", "a"], ["aa", "b"], ["ba", "b"], ["aa", "aa"], ["ab", "ba"]]})",
                                "test", "test");
  Vocabulary vocabulary;
  const Bpe bpe = Bpe::from_json(model, false, vocabulary, "test");
  Bpe::Memory memory;
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    std::string word;
    // Around the length at which the heap takes over.
    for (uint64_t i = 1 + rng.below(2 * Bpe::kShortWord); i > 0; --i) word += rng.below(3) == 0 ? 'b' : 'a';
    std::vector<int32_t> ids;
    bpe.encode(word, memory, ids);
    ASSERT_EQ(ids, merged_by_definition(model, word)) << "seed 5, round " << round << ": " << word;
  }
}

TEST(Bpe, DropsCharactersWithoutATokenWhenThereIsNoUnknownToken) {
  const Json model = parse_json(R"({"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})", "test", "test");
  Vocabulary vocabulary;
  const Bpe bpe = Bpe::from_json(model, false, vocabulary, "test");
  Bpe::Memory memory;
  for (int round = 0; round < 2; ++round) {  // the second time from the cache
    std::vector<int32_t> ids;
    bpe.encode("x", memory, ids);
    EXPECT_TRUE(ids.empty());
    bpe.encode("axb\xE4\xB8\xAD", memory, ids);
    EXPECT_EQ(ids, std::vector<int32_t>{2});  // as the library does: what is left then merges
  }
}

TEST(Bpe, AMegabyteOfOneWordTakesNoQuadraticTime) {
  const auto byte_level = Tokenizer::load(golden_folder("gpt2"));
  const auto fallback = Tokenizer::load(golden_folder("llama2"));
  for (const auto* tokenizer : {&byte_level, &fallback}) {
    for (const std::string unit : {"a", "ab", "\xE4\xB8\xAD", "the"}) {
      std::string word;
      while (word.size() < 1'000'000) word += unit;
      const auto start = std::chrono::steady_clock::now();
      const auto ids = encoded(*tokenizer, word);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      EXPECT_GT(ids.size(), 1000u);
      EXPECT_LT(taken.count(), 20.0) << unit;  // quadratic would be hours; the limit only tells those apart
    }
  }
}

}  // namespace
}  // namespace headrace::tokenizer
