#include "headrace/base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace headrace {
namespace {

TEST(Rng, MatchesThePublishedReference) {
  // xoshiro256** from state {1, 2, 3, 4}: first outputs of the authors' C code.
  Rng rng(Rng::State{1, 2, 3, 4});
  EXPECT_EQ(rng.next(), 11520u);
  EXPECT_EQ(rng.next(), 0u);
  EXPECT_EQ(rng.next(), 1509978240u);
  EXPECT_EQ(rng.next(), 1215971899390074240u);
}

TEST(Rng, RestoringTheStateContinuesTheSequence) {
  Rng rng(7);
  for (int i = 0; i < 5; ++i) rng.normal();
  Rng copy(rng.state());
  EXPECT_EQ(copy.next(), rng.next());
}

TEST(Rng, BelowCoversItsRangeEvenly) {
  Rng rng(11);
  std::vector<int> seen(10);
  for (int i = 0; i < 100000; ++i) ++seen[rng.below(10)];
  // 10,000 expected each; 5 standard deviations are 474.
  for (int count : seen) EXPECT_NEAR(count, 10000, 474);
}

TEST(Rng, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(3);
  double sum = 0, squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.016);
  EXPECT_NEAR(squares / 1e5, 1, 0.023);
}

TEST(Rng, ShuffleIsAPermutationFixedBySeed) {
  std::vector<int> a(100), b(100);
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 0);
  Rng(5).shuffle(a);
  Rng(5).shuffle(b);
  EXPECT_EQ(a, b);
  EXPECT_FALSE(std::is_sorted(a.begin(), a.end()));
  std::sort(a.begin(), a.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a[i], i);
}

TEST(Rng, StreamsDiffer) {
  EXPECT_NE(mix_seed(1, 0), mix_seed(1, 1));
  EXPECT_NE(mix_seed(0, 1), mix_seed(1, 0));
}

}  // namespace
}  // namespace headrace
