#include "headrace/policy/zenflow/schedule.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace::policy::zenflow {
namespace {

std::vector<BlockStep> run(UpdateSchedule& schedule, int64_t steps, size_t block = 0) {
  std::vector<BlockStep> of_block;
  for (int64_t i = 0; i < steps; ++i) of_block.push_back(schedule.next()[block]);
  return of_block;
}

TEST(UpdateScheduleTest, WarmUpUpdatesEveryStepBeforeTheNextForward) {
  UpdateSchedule schedule({.update_interval = 4, .warmup_steps = 3}, 1);
  for (const BlockStep& step : run(schedule, 3)) {
    EXPECT_TRUE(step.flushes);
    EXPECT_EQ(step.due_steps, 0);
    EXPECT_FALSE(step.merges_after);
  }
}

// The picture of docs/zenflow.md: a window of S steps, its update while the next one fills, merged at that one's end.
TEST(UpdateScheduleTest, AnOverlappedWindowMergesAtTheEndOfTheNext) {
  UpdateSchedule schedule({.update_interval = 3, .warmup_steps = 1, .select_interval = 100, .staggers = false}, 1);
  const std::vector<BlockStep> steps = run(schedule, 10);
  const std::vector<bool> flushes = {true, false, false, true, false, false, true, false, false, true};
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].flushes, flushes[i]) << i;
    EXPECT_EQ(steps[i].merges_before, i == 1) << i;  // the warm-up's
    EXPECT_EQ(steps[i].merges_after, i == 6 || i == 9) << i;
    EXPECT_EQ(steps[i].merge_from, i == 1 ? 1 : i == 6 || i == 9 ? 3 : 0) << i;
    EXPECT_EQ(steps[i].due_steps, flushes[i] && i > 0 ? 3 : 0) << i;
  }
}

TEST(UpdateScheduleTest, WithoutOverlapTheNextForwardWaits) {
  UpdateSchedule schedule({.update_interval = 2, .warmup_steps = 1, .overlaps = false}, 1);
  const std::vector<BlockStep> steps = run(schedule, 6);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].flushes, i % 2 == 0) << i;
    EXPECT_EQ(steps[i].merges_before, i % 2 == 1) << i;
    EXPECT_FALSE(steps[i].merges_after) << i;
  }
}

TEST(UpdateScheduleTest, StaggeredBlocksEndTheirWindowsInTurn) {
  UpdateSchedule schedule({.update_interval = 4, .warmup_steps = 1}, 8);
  schedule.next();
  for (int64_t step = 1; step <= 40; ++step) {
    const std::vector<BlockStep> blocks = schedule.next();
    for (size_t b = 0; b < blocks.size(); ++b) {
      EXPECT_EQ(blocks[b].flushes, (step - 1) % 4 == static_cast<int64_t>(b) % 4) << step << ' ' << b;
    }
  }
}

TEST(UpdateScheduleTest, SelectsAtWindowEndsOnceTheIntervalHasPassed) {
  UpdateSchedule schedule({.update_interval = 3, .warmup_steps = 2, .select_interval = 5, .staggers = false}, 1);
  std::vector<size_t> selected;
  const std::vector<BlockStep> steps = run(schedule, 30);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].selects) selected.push_back(i);
    EXPECT_LE(steps[i].selects, steps[i].flushes);
  }
  EXPECT_EQ(selected, (std::vector<size_t>{1, 7, 13, 19, 25}));  // windows end at 1, 4, 7, ...
}

// Whatever the interval is set to, a window's oldest gradient is seen within two windows.
TEST(UpdateScheduleTest, TheIntervalMayChangeFromWindowToWindow) {
  UpdateSchedule schedule({.update_interval = 2, .warmup_steps = 1}, 3);
  int64_t longest = 0;
  for (int64_t step = 0; step < 200; ++step) {
    if (step % 7 == 0) schedule.set_update_interval(1 + step % 5);
    for (const BlockStep& block : schedule.next()) longest = std::max(longest, block.merge_from);
  }
  EXPECT_LE(longest, 5);
}

TEST(UpdateScheduleTest, SettlingTakesWhatIsDueAndEndsWindows) {
  UpdateSchedule schedule({.update_interval = 3, .warmup_steps = 1, .staggers = false}, 1);
  schedule.next();
  EXPECT_EQ(schedule.settle(false), std::vector<int64_t>{1});  // the warm-up's update
  EXPECT_FALSE(schedule.next()[0].merges_before);
  run(schedule, 3);  // a window has ended with step 3, step 4 has begun the next
  EXPECT_EQ(schedule.settle(false), std::vector<int64_t>{0});
  EXPECT_EQ(schedule.settle(true), std::vector<int64_t>{2});
  EXPECT_EQ(schedule.end_windows(), std::vector<bool>{true});
  EXPECT_EQ(schedule.settle(true), std::vector<int64_t>{0});
  EXPECT_EQ(schedule.end_windows(), std::vector<bool>{false});
}

TEST(UpdateScheduleTest, IntervalsBelowOneStepAreRefused) {
  EXPECT_THROW(UpdateSchedule({.update_interval = 0}, 1), InternalError);
  EXPECT_THROW(UpdateSchedule({.warmup_steps = 0}, 1), InternalError);
  EXPECT_THROW(UpdateSchedule({.select_interval = 0}, 1), InternalError);
}

}  // namespace
}  // namespace headrace::policy::zenflow
