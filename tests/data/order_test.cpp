#include "headrace/data/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"
#include "headrace/data/packing.h"
#include "headrace/data/split.h"
#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::ElementsAre;
using Lengths = std::vector<int64_t>;

// Lengths of the documents in each sequence.
std::vector<Lengths> lengths_of(const EpochPlan& plan) {
  std::vector<Lengths> all;
  for (int64_t i = 0; i < plan.sequences(); ++i) {
    all.emplace_back();
    for (const Piece& piece : plan.range(i, i + 1)) all.back().push_back(piece.length());
  }
  return all;
}

// Times each document is predicted: every token but the first exactly once.
int64_t targets_of(const Corpus& corpus, const EpochPlan& plan) {
  return make_micro_batch(corpus, plan.pieces, Layout::documents).trained_tokens;
}

OrderConfig in_order(Layout layout, int64_t max_length, int64_t look_ahead = 256) {
  return {.seed = 0, .shuffle = false, .layout = layout, .max_length = max_length, .pack_look_ahead = look_ahead};
}

TEST(Order, ShufflesEachEpochAnewAndTheSameEveryTime) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, Lengths(50, 5), false);
  const auto pieces = all_of(*corpus);
  const auto documents = [&](uint64_t seed, int64_t epoch, bool shuffle) {
    OrderConfig config;
    config.seed = seed;
    config.shuffle = shuffle;
    std::vector<int64_t> order;
    for (const Piece& piece : plan_epoch(*corpus, pieces, config, epoch).pieces) order.push_back(piece.document);
    return order;
  };
  std::vector<int64_t> straight(50);
  std::iota(straight.begin(), straight.end(), 0);
  EXPECT_EQ(documents(1, 0, false), straight);
  EXPECT_EQ(documents(1, 3, true), documents(1, 3, true));
  EXPECT_NE(documents(1, 0, true), documents(1, 1, true));
  EXPECT_NE(documents(1, 0, true), documents(2, 0, true));
  EXPECT_NE(documents(1, 0, true), straight);
  auto sorted = documents(1, 5, true);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, straight);
}

TEST(Order, IsTheSameOnEveryMachine) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, Lengths(8, 5), false);
  OrderConfig config;
  config.seed = 42;
  std::vector<int64_t> order;
  for (const Piece& piece : plan_epoch(*corpus, all_of(*corpus), config, 1).pieces) order.push_back(piece.document);
  EXPECT_THAT(order, ElementsAre(2, 5, 6, 4, 3, 7, 0, 1)) << "computed apart from this code";
}

TEST(Packing, FirstFitInOrder) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, {6, 5, 4, 3, 10, 2}, false);
  EXPECT_THAT(lengths_of(plan_epoch(*corpus, all_of(*corpus), in_order(Layout::packed, 10), 0)),
              ElementsAre(Lengths{6, 4}, Lengths{5, 3, 2}, Lengths{10}));
  EXPECT_THAT(lengths_of(plan_epoch(*corpus, all_of(*corpus), in_order(Layout::packed, 10, 1), 0)),
              ElementsAre(Lengths{6}, Lengths{5, 4}, Lengths{3}, Lengths{10}, Lengths{2}));
}

TEST(Packing, TextFillsEverySequenceButTheLast) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, {6, 5, 4, 13}, true);
  const EpochPlan plan = plan_epoch(*corpus, all_of(*corpus), in_order(Layout::packed, 8), 0);
  EXPECT_THAT(lengths_of(plan), ElementsAre(Lengths{6, 2}, Lengths{3, 4, 1}, Lengths{8}, Lengths{4}));
  EXPECT_EQ(targets_of(*corpus, plan), 5 + 4 + 3 + 12) << "cutting loses no target";
}

TEST(Order, LongTextIsReadInPieces) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, {20, 3, 9, 8}, true);
  const EpochPlan plan = plan_epoch(*corpus, all_of(*corpus), in_order(Layout::documents, 8), 0);
  EXPECT_THAT(lengths_of(plan), ElementsAre(Lengths{8}, Lengths{8}, Lengths{4}, Lengths{3}, Lengths{8}, Lengths{8}))
      << "the ninth token of the third document would stand alone and predict nothing";
  EXPECT_EQ(targets_of(*corpus, plan), 19 + 2 + 8 + 7);
}

TEST(Order, ShuffledSequencesOfOneFile) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, {800}, true);
  for (const Layout layout : {Layout::packed, Layout::documents}) {
    OrderConfig config = in_order(layout, 8);
    config.shuffle = true;
    const auto begins = [&](int64_t epoch) {
      std::vector<int64_t> out;
      for (const Piece& piece : plan_epoch(*corpus, all_of(*corpus), config, epoch).pieces) out.push_back(piece.begin);
      return out;
    };
    EXPECT_FALSE(std::is_sorted(begins(0).begin(), begins(0).end()));
    EXPECT_NE(begins(0), begins(1));
  }
}

// Property: whatever the lengths, every target of the corpus is learned once an epoch and no sequence is too long.
TEST(Order, EveryTargetOnceAnEpoch) {
  const DataFolder folder;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const bool is_text = rng.below(2) == 0;
    const auto max_length = static_cast<int64_t>(2 + rng.below(30));
    Lengths lengths;
    for (uint64_t i = 0; i < 1 + rng.below(60); ++i) {
      const int64_t most = is_text ? 3 * max_length : max_length;
      lengths.push_back(2 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(most - 1))));
    }
    const auto corpus = corpus_of(folder, lengths, is_text);
    for (const Layout layout : {Layout::documents, Layout::packed}) {
      OrderConfig config = in_order(layout, max_length, static_cast<int64_t>(1 + rng.below(10)));
      config.shuffle = true;
      config.seed = seed;
      const EpochPlan plan = plan_epoch(*corpus, all_of(*corpus), config, static_cast<int64_t>(rng.below(3)));
      EXPECT_EQ(targets_of(*corpus, plan), corpus->coverage().trained_tokens);
      for (const Lengths& sequence : lengths_of(plan)) {
        EXPECT_FALSE(sequence.empty());
        EXPECT_LE(std::accumulate(sequence.begin(), sequence.end(), int64_t{0}), max_length);
        if (layout == Layout::documents) {
          EXPECT_EQ(sequence.size(), 1u);
        }
      }
    }
  }
}

TEST(Order, RefusesDocumentsThatMayNotBeCut) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, {5, 20}, false);
  EXPECT_THROW(check_order(*corpus, all_of(*corpus), in_order(Layout::packed, 19)), ConfigError);
  EXPECT_NO_THROW(check_order(*corpus, all_of(*corpus), in_order(Layout::packed, 20)));
  EXPECT_THROW(check_order(*corpus, all_of(*corpus), in_order(Layout::packed, 1)), ConfigError);
}

TEST(Order, PackingAMillionDocumentsIsQuick) {
  std::vector<Piece> pieces;
  Rng rng(1);
  int64_t at = 0;
  for (int i = 0; i < 1000000; ++i) {
    const auto length = static_cast<int64_t>(2 + rng.below(500));
    pieces.push_back({i, at, at + length, at + length});
    at += length;
  }
  EpochPlan plan;
  pack_first_fit(pieces, 1024, 256, plan);
  EXPECT_EQ(plan.pieces.size(), pieces.size());
  EXPECT_LT(static_cast<double>(plan.sequences()), 1.02 * static_cast<double>(at) / 1024) << "nearly full";
}

}  // namespace
}  // namespace headrace::data
