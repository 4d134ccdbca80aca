#include "headrace/policy/zenflow/auto_interval.h"

#include <gtest/gtest.h>

#include <limits>

namespace headrace::policy::zenflow {
namespace {

constexpr IntervalLimits kLimits{.smallest = 1, .largest = 8};

TEST(AutoIntervalTest, GrowsWhenTheHostFallsBehind) {
  EXPECT_EQ(choose_interval(3.2, 1, 2, kLimits), 4);
  EXPECT_EQ(choose_interval(3.0, 1, 2, kLimits), 3);
}

TEST(AutoIntervalTest, NeverLeavesItsLimits) {
  EXPECT_EQ(choose_interval(100, 1, 4, kLimits), 8);
  EXPECT_EQ(choose_interval(0, 1, 4, kLimits), 1);
  EXPECT_EQ(choose_interval(std::numeric_limits<double>::infinity(), 1, 4, kLimits), 8);
  EXPECT_EQ(choose_interval(0.1, 1, 4, {.smallest = 2, .largest = 8}), 2);
}

TEST(AutoIntervalTest, ShrinksOnlyWithSomeRoom) {
  EXPECT_EQ(choose_interval(2.98, 1, 4, kLimits), 4);
  EXPECT_EQ(choose_interval(2.5, 1, 4, kLimits), 3);
}

// A host that needs a + b S for a window settles where it can follow, and stays there.
TEST(AutoIntervalTest, ComesToRestWhereTheHostFollows) {
  for (const double fixed : {0.5, 1.7, 3.0, 4.4}) {
    for (const double by_step : {0.05, 0.2, 0.4}) {
      int64_t interval = 1;
      const auto host = [&] { return fixed + by_step * static_cast<double>(interval); };
      for (int i = 0; i < 20; ++i) interval = choose_interval(host(), 1, interval, kLimits);
      if (interval < kLimits.largest) {
        EXPECT_LE(host(), static_cast<double>(interval)) << fixed << ' ' << by_step;
      }
      EXPECT_EQ(choose_interval(host(), 1, interval, kLimits), interval) << fixed << ' ' << by_step;
    }
  }
}

}  // namespace
}  // namespace headrace::policy::zenflow
