#include "headrace/optim/schedule.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace::optim {
namespace {

TEST(Schedule, WarmUpRisesLinearlyToThePeak) {
  const ScheduleConfig config{.kind = ScheduleKind::kConstant, .peak = 1, .total_steps = 10, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate(config, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3), 1);
  EXPECT_DOUBLE_EQ(learning_rate(config, 9), 1);
}

TEST(Schedule, LinearFallsToTheFloor) {
  const ScheduleConfig config{
      .kind = ScheduleKind::kLinear, .peak = 2, .total_steps = 10, .warmup_steps = 2, .floor_ratio = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(config, 2), 2);
  EXPECT_DOUBLE_EQ(learning_rate(config, 6), 2 * (0.1 + 0.9 * 0.5));
  EXPECT_GT(learning_rate(config, 9), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(config, 10), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1000), 0.2);
}

TEST(Schedule, CosineIsHalfwayInTheMiddle) {
  const ScheduleConfig config{.kind = ScheduleKind::kCosine, .peak = 1, .total_steps = 100};
  EXPECT_DOUBLE_EQ(learning_rate(config, 0), 1);
  EXPECT_NEAR(learning_rate(config, 50), 0.5, 1e-15);
  EXPECT_NEAR(learning_rate(config, 25), 0.5 + 0.25 * 1.4142135623730951, 1e-15);
  EXPECT_NEAR(learning_rate(config, 100), 0, 1e-15);
}

TEST(Schedule, WarmupStableDecayHoldsThenFalls) {
  const ScheduleConfig config{
      .kind = ScheduleKind::kWarmupStableDecay, .peak = 1, .total_steps = 100, .warmup_steps = 10, .decay_steps = 20};
  EXPECT_DOUBLE_EQ(learning_rate(config, 10), 1);
  EXPECT_DOUBLE_EQ(learning_rate(config, 80), 1);
  EXPECT_DOUBLE_EQ(learning_rate(config, 90), 0.5);
  const ScheduleConfig tenth{.kind = ScheduleKind::kWarmupStableDecay, .peak = 1, .total_steps = 100};
  EXPECT_DOUBLE_EQ(learning_rate(tenth, 90), 1);
  EXPECT_DOUBLE_EQ(learning_rate(tenth, 95), 0.5);
}

TEST(Schedule, NamesAreKnown) {
  EXPECT_EQ(parse_schedule("wsd"), ScheduleKind::kWarmupStableDecay);
  EXPECT_THROW(parse_schedule("cosine_with_restarts"), ConfigError);
}

}  // namespace
}  // namespace headrace::optim
