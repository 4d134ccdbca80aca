#include "headrace/policy/zenflow/selection.h"

#include <gtest/gtest.h>

#include "headrace/base/rng.h"
#include "headrace/kernel/channels.h"
#include "headrace/policy/zenflow/column_score.h"

namespace headrace::policy::zenflow {
namespace {

TEST(NumImportantTest, IsAtLeastOneAndAtMostAll) {
  EXPECT_EQ(num_important(0.1, 3), 1);  // case "ZenFlow selection": k x columns below 1
  EXPECT_EQ(num_important(0.1, 768), 77);
  EXPECT_EQ(num_important(1, 768), 768);
  EXPECT_EQ(num_important(1.0 / 3, 3), 1);
}

// Case "ZenFlow selection": gradient [[1,0,2],[1,0,-2]], k = 1/3.
TEST(SelectionTest, TakesTheColumnWithTheLargestNorm) {
  const std::vector<float> gradient = {1, 0, 2, 1, 0, -2};
  ColumnScore score(3);
  kernel::add_channel_scores(gradient, {.rows = 2, .width = 3}, {0, 2}, score.step());
  score.end_step();
  const std::vector<int32_t> important = {0}, deferred = {1, 2};
  EXPECT_EQ(reselect(score.smoothed(), important, deferred, 1), (std::vector<Swap>{{0, 1}}));
}

TEST(SelectionTest, ABetterColumnMustBeClearlyBetter) {
  const std::vector<double> scores = {1, 1.2, 0.5};
  const std::vector<int32_t> important = {0}, deferred = {1, 2};
  EXPECT_TRUE(reselect(scores, important, deferred, 1.25).empty());
  EXPECT_EQ(reselect(scores, important, deferred, 1.1), (std::vector<Swap>{{0, 0}}));
}

TEST(SelectionTest, EqualScoresMoveNothingAndZerosNeither) {
  const std::vector<int32_t> important = {2}, deferred = {0, 1};
  EXPECT_TRUE(reselect(std::vector<double>{3, 3, 3}, important, deferred, 1).empty());
  EXPECT_TRUE(reselect(std::vector<double>{0, 0, 0}, important, deferred, 1).empty());
}

TEST(SelectionTest, OfEqualOnesTheSmallerChannelComes) {
  const std::vector<int32_t> important = {1}, deferred = {3, 2, 0};
  EXPECT_EQ(reselect(std::vector<double>{5, 1, 5, 5}, important, deferred, 1), (std::vector<Swap>{{0, 2}}));
}

// Without a margin the important columns end up as the best ones, whichever side they were on.
TEST(SelectionTest, WithoutAMarginTheBestAreChosen) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    const auto count = static_cast<int32_t>(2 + rng.below(30));
    const auto top = static_cast<size_t>(1 + rng.below(static_cast<uint64_t>(count) - 1));
    std::vector<double> scores;
    std::vector<int32_t> channels;
    for (int32_t i = 0; i < count; ++i) {
      scores.push_back(static_cast<double>(rng.below(12)));
      channels.insert(channels.begin() + static_cast<std::ptrdiff_t>(rng.below(channels.size() + 1)), i);
    }
    std::vector<int32_t> important(channels.begin(), channels.begin() + static_cast<std::ptrdiff_t>(top));
    std::vector<int32_t> deferred(channels.begin() + static_cast<std::ptrdiff_t>(top), channels.end());
    for (const Swap& swap : reselect(scores, important, deferred, 1)) {
      std::swap(important[static_cast<size_t>(swap.important)], deferred[static_cast<size_t>(swap.deferred)]);
    }
    double worst = 1e9, best = -1;
    for (const int32_t channel : important) worst = std::min(worst, scores[static_cast<size_t>(channel)]);
    for (const int32_t channel : deferred) best = std::max(best, scores[static_cast<size_t>(channel)]);
    EXPECT_GE(worst, best) << round;
  }
}

TEST(ColumnScoreTest, TheMeanStartsWithoutBiasAndForgets) {
  ColumnScore score(1);
  const auto enter = [&](double value) {
    score.step()[0] = value;
    score.end_step();
  };
  enter(4);
  EXPECT_EQ(score.smoothed()[0], 4);
  enter(4);
  EXPECT_NEAR(score.smoothed()[0], 4, 1e-12);
  for (int i = 0; i < 200; ++i) enter(1);
  EXPECT_NEAR(score.smoothed()[0], 1, 1e-6);
  EXPECT_EQ(score.step()[0], 0);
}

TEST(ColumnScoreTest, ConcentrationIsTheShareOfTheBest) {
  ColumnScore score(4);
  EXPECT_EQ(score.concentration(1), 0);
  for (size_t i = 0; i < 4; ++i) score.step()[i] = static_cast<double>(i);
  score.end_step();
  EXPECT_DOUBLE_EQ(score.concentration(1), 0.5);
  EXPECT_DOUBLE_EQ(score.concentration(9), 1);
  EXPECT_DOUBLE_EQ(score.share_of(std::vector<int32_t>{1, 2}), 0.5);
}

}  // namespace
}  // namespace headrace::policy::zenflow
