#include "headrace/policy/zenflow/gradient_ledger.h"

#include <gtest/gtest.h>

#include <set>

namespace headrace::policy::zenflow {
namespace {

TEST(GradientLedgerTest, AWindowOfOneStepMultipliesWithTheClipFactorAlone) {
  GradientLedger ledger(WindowSum::kSlots, 2);
  ledger.enter(0.3F, 77);
  const WindowParts window = ledger.end_window();
  ASSERT_EQ(window.parts.size(), 1U);
  EXPECT_EQ(window.parts[0].scale, 0.3F);
  EXPECT_EQ(window.mean_scale, 1.0F);
}

// Steps of 10 and 30 tokens with mean gradients 1 and 2: the mean over tokens is (10 + 60) / 40.
TEST(GradientLedgerTest, StepsCountByTheirTokens) {
  GradientLedger ledger(WindowSum::kSlots, 4);
  ledger.enter(1, 10);
  ledger.enter(1, 30);
  const WindowParts window = ledger.end_window();
  EXPECT_FLOAT_EQ((1 * window.parts[0].scale + 2 * window.parts[1].scale) * window.mean_scale, 1.75F);
}

TEST(GradientLedgerTest, EachStepIsClippedByItsOwnFactor) {
  GradientLedger ledger(WindowSum::kSlots, 4);
  ledger.enter(0.5F, 10);
  ledger.enter(0.25F, 10);
  const WindowParts window = ledger.end_window();
  EXPECT_EQ(window.parts[0].scale, 0.5F);
  EXPECT_EQ(window.parts[1].scale, 0.25F);
  EXPECT_EQ(window.mean_scale, 0.5F);
}

// Windows of even and odd length: none shares a slot with the one before, whose update may still read it.
TEST(GradientLedgerTest, NeighbouringWindowsShareNoBuffer) {
  for (const int64_t length : {1, 2, 3, 4, 5}) {
    GradientLedger ledger(WindowSum::kSlots, static_cast<int32_t>(2 * length));
    std::set<int32_t> before;
    for (int window = 0; window < 7; ++window) {
      std::set<int32_t> now;
      for (int64_t step = 0; step < length; ++step) {
        now.insert(ledger.arrival().slot);
        EXPECT_FALSE(before.contains(ledger.arrival().slot));
        ledger.enter(1, 1);
      }
      EXPECT_EQ(static_cast<int64_t>(now.size()), length);
      EXPECT_EQ(static_cast<int64_t>(ledger.end_window().parts.size()), length);
      before = now;
    }
  }
}

TEST(GradientLedgerTest, ARunningSumTakesTurnsByWindow) {
  GradientLedger ledger(WindowSum::kRunning, 0);
  for (int window = 0; window < 5; ++window) {
    EXPECT_TRUE(ledger.arrival().is_first);
    ledger.enter(1, 5);
    EXPECT_FALSE(ledger.arrival().is_first);
    EXPECT_EQ(ledger.arrival().slot, window % 2);
    ledger.enter(1, 15);
    const WindowParts parts = ledger.end_window();
    ASSERT_EQ(parts.parts.size(), 1U);
    EXPECT_EQ(parts.parts[0].slot, window % 2);
    EXPECT_EQ(parts.parts[0].scale, 1.0F);
    EXPECT_EQ(parts.mean_scale, 0.25F);
  }
}

}  // namespace
}  // namespace headrace::policy::zenflow
