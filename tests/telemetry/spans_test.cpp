#include "headrace/telemetry/spans.h"

#include <gtest/gtest.h>

namespace headrace::telemetry {
namespace {

double now_s = 0;  // the clock these tests turn by hand
double hand_clock() { return now_s; }

TEST(PhaseTimes, AddUpPerPhaseAndPerStep) {
  PhaseTimes times(hand_clock);
  EXPECT_EQ(times.step_time_s(), 0);
  EXPECT_EQ(times.stall_share(), 0);
  for (int step = 0; step < 2; ++step) {
    times.begin_step();
    {
      const PhaseTimes::Span span(times, Phase::kDataWait);
      now_s += 1;
    }
    {
      const PhaseTimes::Span span(times, Phase::kForward);
      now_s += 2;
    }
    now_s += 1;  // in no phase, but part of the step
    times.end_step();
    const PhaseTimes::Span span(times, Phase::kEval);
    now_s += 100;
  }
  EXPECT_EQ(times.total_s(Phase::kDataWait), 2);
  EXPECT_EQ(times.total_s(Phase::kForward), 4);
  EXPECT_EQ(times.total_s(Phase::kEval), 200);
  EXPECT_EQ(times.num_steps(), 2);
  EXPECT_EQ(times.last_step_s(), 4);
  EXPECT_EQ(times.step_time_s(), 4);
  EXPECT_EQ(times.stall_share(), 0.25);
}

TEST(PhaseTimes, EveryPhaseHasItsName) {
  EXPECT_EQ(name_of(Phase::kDataWait), "data_wait");
  EXPECT_EQ(name_of(Phase::kSave), "save");
}

TEST(PhaseTimes, TheSystemClockGoesForward) {
  const double before = PhaseTimes::steady_seconds();
  EXPECT_GE(PhaseTimes::steady_seconds(), before);
}

}  // namespace
}  // namespace headrace::telemetry
