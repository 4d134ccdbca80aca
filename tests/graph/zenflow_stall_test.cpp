#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "headrace/graph/cost_table.h"
#include "headrace/graph/simulator.h"
#include "headrace/graph/stall.h"
#include "tests/graph/zenflow_schedule.h"

namespace headrace::graph {
namespace {

constexpr int32_t kBlocks = 32;
constexpr double kForward_s = 1, kBackward_s = 2, kStep_s = kForward_s + kBackward_s;
constexpr double kDeferred = 0.9;              // share of the columns
constexpr double kState = 24, kGradient = 4;   // bytes a parameter: state that an update touches, a gradient
constexpr double kExact = kState + kGradient;  // bytes a parameter of an exact update
constexpr int64_t kParameters = 10000;         // of a block

// Host time of a window, from that of an exact update of the whole model.
double window_s(double exact_s, int64_t interval, bool has_sum) {
  const double per_step = has_sum ? 8 + kGradient : kGradient;
  return kDeferred * (kState + per_step * static_cast<double>(interval)) / kExact * exact_s;
}

// The smallest S with which the host keeps up; empty when none up to 8 does.
std::optional<int64_t> smallest_interval(double exact_s, bool has_sum) {
  for (int64_t interval = 1; interval <= 8; ++interval) {
    if (window_s(exact_s, interval, has_sum) <= static_cast<double>(interval) * kStep_s) return interval;
  }
  return std::nullopt;
}

int64_t bytes(double per_parameter) { return std::llround(kDeferred * per_parameter * kParameters); }

ZenflowShape shape_of(int64_t interval, bool has_sum) {
  ZenflowBlock block{.weight_bytes = bytes(2), .gradient_bytes = bytes(kGradient)};
  block.update_bytes = bytes(has_sum ? kState : kState + kGradient * static_cast<double>(interval));
  block.accumulate_bytes = has_sum ? bytes(8 + kGradient) : 0;
  ZenflowShape shape;
  shape.blocks.assign(kBlocks, block);
  shape.step.clip = true;
  return shape;
}

// Ideal links.
CostTable table_of(double exact_s) {
  CostTable table;
  table.of(LaneKind::kHostUpdate).seconds_per_byte = exact_s / (kExact * kParameters * kBlocks);
  table.blocks.assign(kBlocks, {.forward_s = kForward_s / kBlocks, .backward_s = kBackward_s / kBlocks});
  return table;
}

// Of the second half of `num_windows`.
double stall_share(double exact_s, const ZenflowSettings& settings, bool has_sum, int64_t num_windows = 8) {
  ZenflowSchedule schedule(shape_of(settings.interval, has_sum), settings);
  std::vector<StepGraph> steps;
  for (int64_t step = 0; step < num_windows * settings.interval; ++step) steps.push_back(zenflow_step(schedule.next()));
  TaskGraph graph = join_steps(steps);
  assign_costs(graph, table_of(exact_s));
  const Timeline timeline = simulate(graph);
  return attribute_stall(graph, timeline, steady_window(graph, timeline)).share();
}

// A host that is a little too slow falls behind by a little each window, and staggered windows have a whole window's
// time to lose before the device waits.
int64_t windows_until_steady(double share, bool is_staggered) {
  return is_staggered && share > 0 ? 8 + std::llround(3 / share) : 8;
}

TEST(ZenflowStall, IsTheHostsExcessOverTheWindow) {
  for (const double ratio : {0.5, 1.0, 2.0, 4.0}) {
    for (const bool has_sum : {false, true}) {
      for (const bool is_staggered : {false, true}) {
        for (int64_t interval = 1; interval <= 8; ++interval) {
          SCOPED_TRACE(testing::Message() << "C / T " << ratio << " S " << interval << " sum " << has_sum
                                          << " staggered " << is_staggered);
          const double host_s = window_s(ratio * kStep_s, interval, has_sum);
          const double expected = std::max(0.0, 1 - static_cast<double>(interval) * kStep_s / host_s);
          const ZenflowSettings settings{.interval = interval, .is_staggered = is_staggered, .num_slots = 2 * interval};
          const int64_t windows = windows_until_steady(expected, is_staggered);
          EXPECT_NEAR(stall_share(ratio * kStep_s, settings, has_sum, windows), expected, 0.01);
        }
      }
    }
  }
}

// By the host's floor of ZenFlow: slots reach four step times with S = 7, a running sum never does.
TEST(ZenflowStall, TheSmallestIntervalThatTheFloorAllowsLeavesNone) {
  EXPECT_EQ(smallest_interval(4 * kStep_s, false), 7);
  EXPECT_EQ(smallest_interval(4 * kStep_s, true), std::nullopt);
  for (const double ratio : {0.5, 1.0, 2.0, 4.0}) {
    for (const bool has_sum : {false, true}) {
      const auto interval = smallest_interval(ratio * kStep_s, has_sum);
      SCOPED_TRACE(testing::Message() << "C / T " << ratio << " sum " << has_sum << " S " << interval.value_or(0));
      ZenflowSettings settings{.interval = interval.value_or(8)};
      settings.num_slots = 2 * settings.interval;
      if (!interval) {
        EXPECT_GT(stall_share(ratio * kStep_s, settings, has_sum), 0.01);
        continue;
      }
      EXPECT_LT(stall_share(ratio * kStep_s, settings, has_sum), 0.01);
      if (*interval == 1) continue;
      --settings.interval;
      EXPECT_GT(stall_share(ratio * kStep_s, settings, has_sum), 0.01);
    }
  }
}

}  // namespace
}  // namespace headrace::graph
