#include "headrace/policy/block_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/base/rng.h"

namespace headrace::policy {
namespace {

// How often each element is in a piece.
std::vector<int> covered(const Pieces& pieces, int64_t numel) {
  std::vector<int> counts(static_cast<size_t>(numel), 0);
  for (const auto& piece : pieces) {
    for (const Stretch& stretch : piece) {
      for (int64_t i = stretch.begin; i < stretch.end; ++i) ++counts.at(static_cast<size_t>(i));
    }
  }
  return counts;
}

TEST(BlockPieces, EvenOnesCoverEachElementOnce) {
  EXPECT_EQ(even_pieces(10, 3), (Pieces{{{0, 3}}, {{3, 6}}, {{6, 10}}}));
  EXPECT_EQ(even_pieces(1, 2), (Pieces{{}, {{0, 1}}}));
  EXPECT_EQ(even_pieces(5, 1), (Pieces{{{0, 5}}}));
}

TEST(BlockPieces, NeededRowsAndWhatIsOutsideTheTableComeFirst) {
  const std::vector<int64_t> needed = {0, 3, 4};
  // Six rows of 2 from 10 on, 4 numbers before and 2 behind.
  EXPECT_EQ(needed_first_pieces(24, {10, 6, 2}, needed, 3),
            (Pieces{{{0, 12}, {16, 20}, {22, 24}}, {{12, 16}}, {{20, 22}}}));
  EXPECT_EQ(needed_first_pieces(12, {0, 6, 2}, {}, 2), (Pieces{{}, {{0, 12}}}));
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(needed_first_pieces(12, {0, 6, 2}, all, 3), (Pieces{{{0, 12}}, {}, {}}));
}

TEST(BlockPieces, AnyNeededRowsCoverEachElementOnce) {
  Rng rng(3);
  for (int i = 0; i < 200; ++i) {
    const RowTable table{static_cast<int64_t>(rng.below(20)), static_cast<int64_t>(1 + rng.below(50)),
                         static_cast<int64_t>(1 + rng.below(5))};
    std::vector<int64_t> needed;
    for (int64_t row = 0; row < table.rows; ++row) {
      if (rng.below(3) == 0) needed.push_back(row);
    }
    const int64_t numel = table.offset + table.rows * table.width + static_cast<int64_t>(rng.below(9));
    const Pieces pieces = needed_first_pieces(numel, table, needed, static_cast<int32_t>(2 + rng.below(6)));
    const std::vector<int> counts = covered(pieces, numel);
    EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; }));
  }
}

}  // namespace
}  // namespace headrace::policy
