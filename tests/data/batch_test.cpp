// CASES.md "packing" (layout part), "masks" and "token weights" (the counts that weight them).
#include "headrace/data/batch.h"

#include <gtest/gtest.h>

#include "headrace/data/split.h"
#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using Ints = std::vector<int32_t>;
using Starts = std::vector<int64_t>;

// Documents [1,2,3] and [4..8] as in CASES.md.
std::shared_ptr<const Corpus> two_documents(const DataFolder& folder) {
  const auto escape = [](int first, int last) {
    std::string text;
    for (int i = first; i <= last; ++i) text += "\\u000" + std::to_string(i);
    return "{\"text\": \"" + text + "\"}\n";
  };
  CorpusConfig config;
  config.files = {folder.write("two.jsonl", escape(1, 3) + escape(4, 8))};
  config.append_end_of_text = false;
  return load_corpus(config, toy_codec());
}

TEST(MicroBatch, DocumentsBackToBack) {
  const DataFolder folder;
  const auto corpus = two_documents(folder);
  const MicroBatch batch = make_micro_batch(*corpus, all_of(*corpus), Layout::documents);
  EXPECT_EQ(batch.ids, (Ints{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(batch.targets, (Ints{2, 3, kIgnored, 5, 6, 7, 8, kIgnored})) << "no target crosses a document";
  EXPECT_EQ(batch.positions, (Ints{0, 1, 2, 0, 1, 2, 3, 4})) << "positions restart";
  EXPECT_EQ(batch.document_starts, (Starts{0, 3, 8}));
  EXPECT_EQ(batch.sample_indices, (Starts{0, 1}));
  EXPECT_EQ(batch.trained_tokens, 6);
  EXPECT_EQ(batch.padding_tokens, 0);
}

TEST(MicroBatch, PaddingIsADocumentOfItsOwn) {
  const DataFolder folder;
  const auto corpus = two_documents(folder);
  const MicroBatch right = make_micro_batch(*corpus, all_of(*corpus), Layout::padded_right);
  EXPECT_EQ(right.ids, (Ints{1, 2, 3, kEndOfText, kEndOfText, 4, 5, 6, 7, 8}));
  EXPECT_EQ(right.targets, (Ints{2, 3, kIgnored, kIgnored, kIgnored, 5, 6, 7, 8, kIgnored}));
  EXPECT_EQ(right.positions, (Ints{0, 1, 2, 0, 1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(right.document_starts, (Starts{0, 3, 5, 10}));
  EXPECT_EQ(right.sample_indices, (Starts{0, -1, 1}));
  const MicroBatch left = make_micro_batch(*corpus, all_of(*corpus), Layout::padded_left);
  EXPECT_EQ(left.ids, (Ints{kEndOfText, kEndOfText, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(left.positions, (Ints{0, 1, 0, 1, 2, 0, 1, 2, 3, 4}));
  EXPECT_EQ(left.document_starts, (Starts{0, 2, 5, 10}));
  EXPECT_EQ(left.sample_indices, (Starts{-1, 0, 1}));
  EXPECT_EQ(left.trained_tokens, 6);
  EXPECT_EQ(left.padding_tokens, 2);
}

TEST(MicroBatch, OnlyTrainedTokensAreTargets) {
  const DataFolder folder;
  CorpusConfig config;
  config.files = {folder.write(
      "one.jsonl", R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, )"
                   R"({"role": "user", "content": "r"}, {"role": "assistant", "content": "bc"}]})")};
  const auto corpus = load_corpus(config, toy_codec());
  const MicroBatch batch = make_micro_batch(*corpus, all_of(*corpus), Layout::documents);
  std::string learned;
  for (size_t i = 0; i < batch.targets.size(); ++i) {
    if (batch.targets[i] == kIgnored) continue;
    EXPECT_EQ(batch.targets[i], batch.ids[i + 1]);
    learned += batch.targets[i] == kEnd ? "[E]" : std::string(1, static_cast<char>(batch.targets[i]));
  }
  EXPECT_EQ(learned, "a[E]bc[E]");
  EXPECT_EQ(batch.trained_tokens, 5);
}

TEST(MicroBatch, APieceOfATextPredictsTheTokenAfterIt) {
  const DataFolder folder;
  const auto corpus = two_documents(folder);
  const Piece piece{1, 3, 5, 8};
  const MicroBatch batch = make_micro_batch(*corpus, {&piece, 1}, Layout::documents);
  EXPECT_EQ(batch.ids, (Ints{4, 5}));
  EXPECT_EQ(batch.targets, (Ints{5, 6}));
  EXPECT_EQ(batch.trained_tokens, 2);
}

TEST(MicroBatch, NoTrainedTokenIsNoError) {
  const DataFolder folder;
  const auto corpus = two_documents(folder);
  const Piece piece{0, 2, 3, 3};
  const MicroBatch batch = make_micro_batch(*corpus, {&piece, 1}, Layout::documents);
  EXPECT_EQ(batch.targets, Ints{kIgnored});
  EXPECT_EQ(batch.trained_tokens, 0);
}

}  // namespace
}  // namespace headrace::data
