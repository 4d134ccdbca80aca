#include "headrace/data/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "headrace/base/rng.h"
#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::shared_ptr<const Corpus> grouped(const DataFolder& folder, int records, int groups) {
  std::string lines;
  for (int i = 0; i < records; ++i) {
    lines +=
        R"({"text": "text )" + std::to_string(i) + R"(", "headword": "w)" + std::to_string(i * i % groups) + "\"}\n";
  }
  CorpusConfig config;
  config.files = {folder.write("grouped.jsonl", lines)};
  config.group_field = "headword";
  return load_corpus(config, toy_codec());
}

std::set<int64_t> documents_of(const std::vector<Piece>& pieces) {
  std::set<int64_t> documents;
  for (const Piece& piece : pieces) documents.insert(piece.document);
  return documents;
}

TEST(Split, EveryDocumentIsOnOneSide) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(100, 5), true);
  const Split split = split_corpus(*corpus, {.fraction = 0.1, .count = 0, .seed = 3});
  EXPECT_EQ(split.held_out.size(), 10u);
  EXPECT_EQ(split.train.size(), 90u);
  std::set<int64_t> all = documents_of(split.train);
  all.merge(documents_of(split.held_out));
  EXPECT_EQ(all.size(), 100u);
  EXPECT_EQ(split_corpus(*corpus, {.fraction = 0, .count = 7, .seed = 3}).held_out.size(), 7u);
  EXPECT_EQ(split_corpus(*corpus, {}).train.size(), 100u);
}

TEST(Split, IsDrawnFromTheSeedAlone) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(100, 5), true);
  const auto held_out = [&](uint64_t seed) {
    return documents_of(split_corpus(*corpus, {.fraction = 0.2, .count = 0, .seed = seed}).held_out);
  };
  EXPECT_EQ(held_out(1), held_out(1));
  EXPECT_NE(held_out(1), held_out(2));
}

TEST(Split, GroupsNeverStraddle) {
  const DataFolder folder;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto corpus = grouped(folder, 200, 2 + static_cast<int>(seed));
    const Split split = split_corpus(*corpus, {.fraction = 0.1, .count = 0, .seed = seed});
    std::set<uint64_t> trained;
    for (const Piece& piece : split.train) trained.insert(corpus->documents()[piece.document].group);
    for (const Piece& piece : split.held_out) {
      EXPECT_FALSE(trained.contains(corpus->documents()[piece.document].group)) << "seed " << seed;
    }
    EXPECT_GE(split.held_out.size(), 20u);
    EXPECT_GE(split.train.size(), 1u);
  }
}

TEST(Split, AFileThatIsOneDocumentGivesItsTail) {
  const DataFolder folder;
  CorpusConfig config;
  config.files = {folder.write("a.txt", std::string(999, 'x')), folder.write("b.txt", std::string(99, 'y'))};
  const auto corpus = load_corpus(config, toy_codec());
  const Split split = split_corpus(*corpus, {.fraction = 0.1, .count = 0, .seed = 0});
  ASSERT_EQ(split.train.size(), 2u);
  ASSERT_EQ(split.held_out.size(), 2u);
  EXPECT_EQ(split.train[0].length(), 900);
  EXPECT_EQ(split.train[0].document_end, split.train[0].end) << "no target comes from the held-out part";
  EXPECT_EQ(split.held_out[0].begin, split.train[0].end);
  EXPECT_EQ(split.held_out[1].length(), 10);
  EXPECT_THAT(error_of<ConfigError>([&] { split_corpus(*corpus, {.fraction = 0, .count = 3, .seed = 0}); }),
              HasSubstr("fraction"));
}

TEST(Split, RefusesWhatCannotBeHeldOut) {
  const DataFolder folder;
  const auto one = corpus_of(folder, {5}, true);
  EXPECT_THAT(error_of<ConfigError>([&] { split_corpus(*one, {.fraction = 0.1, .count = 0, .seed = 0}); }),
              AllOf(HasSubstr("1 of 1"), HasSubstr("1 group")));
  const auto ten = corpus_of(folder, std::vector<int64_t>(10, 5), true);
  EXPECT_THROW(split_corpus(*ten, {.fraction = 0, .count = 10, .seed = 0}), ConfigError);
  EXPECT_THROW(split_corpus(*ten, {.fraction = 1, .count = 0, .seed = 0}), ConfigError);
  EXPECT_THROW(split_corpus(*ten, {.fraction = -0.1, .count = 0, .seed = 0}), ConfigError);
  EXPECT_THROW(split_corpus(*ten, {.fraction = 0, .count = -1, .seed = 0}), ConfigError);
  EXPECT_THROW(split_corpus(*ten, {.fraction = 0.1, .count = 1, .seed = 0}), ConfigError);
}

}  // namespace
}  // namespace headrace::data
