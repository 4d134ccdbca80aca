#include "headrace/kernel/channels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <thread>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/kernel/squared_norm.h"
#include "tests/kernel/every_target.h"
#include "tests/kernel/random_channels.h"

namespace headrace::kernel {
namespace {

Lines all_lines(const MatrixShape& shape, const std::vector<int32_t>& channels) {
  return {0, num_lines(shape, channels.size())};
}

size_t compact_size(const MatrixShape& shape, const std::vector<int32_t>& channels) {
  return static_cast<size_t>(num_lines(shape, channels.size()) * line_width(shape, channels.size()));
}

std::vector<float> gathered(const std::vector<float>& matrix, const MatrixShape& shape,
                            const std::vector<int32_t>& channels) {
  std::vector<float> compact(compact_size(shape, channels));
  gather_channels(matrix, shape, channels, all_lines(shape, channels), compact);
  return compact;
}

std::vector<double> scores_of(const std::vector<float>& matrix, const MatrixShape& shape) {
  std::vector<double> scores(static_cast<size_t>(shape.num_channels()));
  add_channel_scores(matrix, shape, {0, shape.rows}, scores);
  return scores;
}

// Bits that an arithmetic copy would change.
std::vector<float> random_matrix(const MatrixShape& shape, uint64_t seed) {
  std::vector<float> matrix = random_values(static_cast<size_t>(shape.num_elements()), seed);
  for (size_t i = 0; i < matrix.size(); i += 17) matrix[i] = std::bit_cast<float>(0x7f812345u);
  return matrix;
}

TEST(Channels, GatherAndScatterMoveEachElementToItsPlace) {
  for (const ChosenChannels& chosen : many_choices(1)) {
    const auto& [shape, important, deferred] = chosen;
    const std::vector<float> matrix = random_matrix(shape, 2);
    for (const auto& channels : {important, deferred}) {
      const std::vector<float> compact = gathered(matrix, shape, channels);
      const std::vector<float> before(matrix.size(), 7.0f);
      std::vector<float> expected_compact(compact.size()), expected_matrix = before, scattered = before;
      const int64_t width = line_width(shape, channels.size());
      for (size_t at = 0; at < compact.size(); ++at) {
        const auto i = static_cast<int64_t>(at);
        const size_t place = place_of(shape, channels, i / width, i % width);
        expected_compact[at] = expected_matrix[place] = matrix[place];
      }
      scatter_channels(compact, shape, channels, all_lines(shape, channels), scattered);
      ASSERT_TRUE(same_bytes(compact, expected_compact)) << chosen;
      ASSERT_TRUE(same_bytes(scattered, expected_matrix)) << chosen;
    }
  }
}

// Case "ZenFlow selection": gradient [[1, 0, 2], [1, 0, -2]] gives the columns 2, 0, 8.
TEST(Channels, ScoresAreTheSquaredNormsOfTheChannels) {
  const std::vector<float> gradient = {1, 0, 2, 1, 0, -2};
  EXPECT_EQ(scores_of(gradient, {2, 3, Axis::kColumns}), (std::vector<double>{2, 0, 8}));
  EXPECT_EQ(scores_of(gradient, {2, 3, Axis::kRows}), (std::vector<double>{5, 5}));
}

TEST(Channels, ScoresAgreeWithASumInDouble) {
  for (const ChosenChannels& chosen : many_choices(3)) {
    const MatrixShape& shape = chosen.shape;
    const std::vector<float> matrix = random_values(chosen.num_elements(), 4);
    std::vector<double> scores(static_cast<size_t>(shape.num_channels()), 0.1), expected = scores;
    add_channel_scores(matrix, shape, {0, shape.rows}, scores);
    for (size_t i = 0; i < matrix.size(); ++i) {
      const size_t row = i / static_cast<size_t>(shape.width), column = i % static_cast<size_t>(shape.width);
      expected[shape.axis == Axis::kColumns ? column : row] += static_cast<double>(matrix[i]) * matrix[i];
    }
    for (size_t i = 0; i < scores.size(); ++i) {
      // A row's order of additions is another.
      const double tolerance = shape.axis == Axis::kColumns ? 0 : 1e-13 * expected[i];
      ASSERT_NEAR(scores[i], expected[i], tolerance) << chosen;
    }
  }
}

TEST(Channels, ARowsScoreIsItsSquaredNorm) {
  const MatrixShape shape{3, 40'001, Axis::kRows};
  const std::vector<float> matrix = random_values(static_cast<size_t>(shape.num_elements()), 5);
  const std::vector<double> scores = scores_of(matrix, shape);
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(scores[row], squared_norm(std::span(matrix).subspan(row * 40'001, 40'001)));
  }
}

TEST(Channels, CutsIntoLinesDoNotChangeOneBit) {
  Rng rng(6);
  for (const ChosenChannels& chosen : many_choices(7)) {
    const auto& [shape, important, deferred] = chosen;
    const std::vector<float> matrix = random_values(chosen.num_elements(), 8),
                             whole = gathered(matrix, shape, deferred);
    const int64_t width = line_width(shape, deferred.size());
    std::vector<float> compact(whole.size()), scattered(matrix.size()), expected(matrix.size());
    scatter_channels(whole, shape, deferred, all_lines(shape, deferred), expected);
    for (const Lines part : random_cuts(num_lines(shape, deferred.size()), rng)) {
      const auto compact_part = std::span(compact).subspan(static_cast<size_t>(part.begin * width),
                                                           static_cast<size_t>(part.count() * width));
      gather_channels(matrix, shape, deferred, part, compact_part);
      scatter_channels(compact_part, shape, deferred, part, scattered);
    }
    std::vector<double> scores(static_cast<size_t>(shape.num_channels()));
    for (const Lines part : random_cuts(shape.rows, rng)) add_channel_scores(matrix, shape, part, scores);
    ASSERT_TRUE(same_bytes(compact, whole) && same_bytes(scattered, expected)) << chosen;
    ASSERT_TRUE(same_bytes(scores, scores_of(matrix, shape))) << chosen;
  }
}

struct Split {
  std::vector<float> important, deferred;
  std::vector<double> scores;
  friend bool operator==(const Split&, const Split&) = default;
};

Split split(const std::vector<float>& matrix, const ChosenChannels& chosen, const std::vector<Lines>& parts) {
  Split result{std::vector<float>(compact_size(chosen.shape, chosen.important)),
               std::vector<float>(compact_size(chosen.shape, chosen.deferred)),
               std::vector<double>(static_cast<size_t>(chosen.shape.width), 0.25)};
  for (const Lines part : parts) {
    const auto begin = static_cast<size_t>(part.begin), count = static_cast<size_t>(part.count());
    const auto side = [&](const std::vector<int32_t>& channels, std::vector<float>& compact) {
      return ColumnSide{channels, std::span(compact).subspan(begin * channels.size(), count * channels.size())};
    };
    split_columns(matrix, chosen.shape, part, side(chosen.important, result.important),
                  side(chosen.deferred, result.deferred), result.scores);
  }
  return result;
}

TEST(Channels, OnePassSplitsAsThreeDo) {
  Rng rng(9);
  std::vector<ChosenChannels> choices = many_choices(10);
  choices.push_back(choose({37, 2048, Axis::kColumns}, 204, rng));  // several tiles
  choices.push_back(choose({3, 9000, Axis::kColumns}, 900, rng));   // a row larger than a tile
  for (const ChosenChannels& chosen : choices) {
    const MatrixShape& shape = chosen.shape;
    if (shape.axis != Axis::kColumns) continue;
    const std::vector<float> matrix = random_values(chosen.num_elements(), 11);
    Split expected{gathered(matrix, shape, chosen.important), gathered(matrix, shape, chosen.deferred),
                   std::vector<double>(static_cast<size_t>(shape.width), 0.25)};
    add_channel_scores(matrix, shape, {0, shape.rows}, expected.scores);
    ASSERT_EQ(split(matrix, chosen, {{0, shape.rows}}), expected) << chosen;
    ASSERT_EQ(split(matrix, chosen, random_cuts(shape.rows, rng)), expected) << chosen;
  }
}

TEST(Channels, EveryInstructionSetGivesTheSameBits) {
  Rng rng(12);
  for (const Axis axis : {Axis::kColumns, Axis::kRows}) {
    const ChosenChannels chosen = choose({23, 137, axis}, 13, rng);
    const MatrixShape& shape = chosen.shape;
    const std::vector<float> matrix = random_values(chosen.num_elements(), 13);
    const std::vector<float> best = gathered(matrix, shape, chosen.deferred);
    const std::vector<double> best_scores = scores_of(matrix, shape);
    std::vector<float> best_scattered(matrix.size());
    scatter_channels(best, shape, chosen.deferred, all_lines(shape, chosen.deferred), best_scattered);
    for_every_target([&] {
      std::vector<float> scattered(matrix.size());
      scatter_channels(best, shape, chosen.deferred, all_lines(shape, chosen.deferred), scattered);
      EXPECT_TRUE(same_bytes(gathered(matrix, shape, chosen.deferred), best));
      EXPECT_TRUE(same_bytes(scattered, best_scattered));
      EXPECT_TRUE(same_bytes(scores_of(matrix, shape), best_scores));
    });
  }
}

// Both sides at once, each on its own thread: ThreadSanitizer sees whether one touches an element of the other.
TEST(Channels, SidesCanBePutBackAtTheSameTime) {
  Rng rng(14);
  const ChosenChannels chosen = choose({64, 300, Axis::kColumns}, 30, rng);
  const MatrixShape& shape = chosen.shape;
  const std::vector<float> matrix = random_values(chosen.num_elements(), 15);
  std::vector<float> joined(matrix.size());
  const auto put_back = [&](const std::vector<int32_t>& channels) {
    scatter_channels(gathered(matrix, shape, channels), shape, channels, all_lines(shape, channels), joined);
  };
  {
    const std::jthread other(put_back, chosen.important);
    put_back(chosen.deferred);
  }
  EXPECT_TRUE(same_bytes(joined, matrix));
}

TEST(Channels, ScoresShowWhatIsNotFinite) {
  std::vector<float> gradient(6, 1.0f);
  gradient[4] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(scores_of(gradient, {2, 3, Axis::kColumns})[1], std::numeric_limits<double>::infinity());
  EXPECT_EQ(scores_of(gradient, {2, 3, Axis::kColumns})[0], 2);
}

TEST(Channels, WhatDoesNotFitIsOurBug) {
  const MatrixShape shape{2, 3, Axis::kColumns};
  const std::vector<float> matrix(6);
  const std::vector<int32_t> channels = {2, 0}, outside = {0, 3}, negative = {-1, 0};
  std::vector<float> compact(4);
  std::vector<double> scores(3);
  const auto gather = [&](const MatrixShape& of, const std::vector<int32_t>& list, Lines lines) {
    gather_channels(matrix, of, list, lines, compact);
  };
  EXPECT_NO_THROW(gather(shape, channels, {0, 2}));
  EXPECT_THROW(gather({2, 4}, channels, {0, 2}), InternalError);
  EXPECT_THROW(gather({-2, -3}, channels, {0, 2}), InternalError);
  EXPECT_THROW(gather(shape, outside, {0, 2}), InternalError);
  EXPECT_THROW(gather(shape, negative, {0, 2}), InternalError);
  EXPECT_THROW(gather(shape, channels, {0, 1}), InternalError);
  EXPECT_THROW(gather(shape, channels, {1, 3}), InternalError);
  EXPECT_THROW(gather(shape, channels, {2, 0}), InternalError);
  std::vector<float> whole(5);
  EXPECT_THROW(scatter_channels(compact, shape, channels, {0, 2}, whole), InternalError);
  EXPECT_THROW(add_channel_scores(matrix, {2, 3, Axis::kRows}, {0, 2}, scores), InternalError);
  EXPECT_THROW(add_channel_scores(matrix, shape, {0, 3}, scores), InternalError);
  std::vector<float> rest(2);
  const std::vector<int32_t> other = {1};
  EXPECT_NO_THROW(split_columns(matrix, shape, {0, 2}, {channels, compact}, {other, rest}, scores));
  EXPECT_THROW(split_columns(matrix, shape, {0, 2}, {channels, compact}, {other, compact}, scores), InternalError);
  EXPECT_THROW(split_columns(matrix, {3, 2, Axis::kRows}, {0, 2}, {channels, compact}, {other, rest}, scores),
               InternalError);
}

TEST(Channels, AnErrorSaysBothNumbers) {
  const std::vector<int32_t> channels = {0};
  std::vector<float> matrix(6), compact(5);
  try {
    gather_channels(matrix, {2, 3}, channels, {0, 2}, compact);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "[kernel.gather_channels] compact form: 5 numbers where 2 must be.");
  }
}

}  // namespace
}  // namespace headrace::kernel
