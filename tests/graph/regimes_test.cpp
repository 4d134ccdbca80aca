#include "headrace/graph/regimes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/no_overlap_step.h"
#include "headrace/graph/resident_step.h"
#include "headrace/graph/simulator.h"
#include "tests/graph/equal_blocks.h"

namespace headrace::graph {
namespace {

constexpr int64_t kSteps = 12;
constexpr int32_t kPieces = 8;
constexpr double kClock_s = 2e-7;  // rounding of every task to a nanosecond, over a step

double stall_of(const StepGraph& step, const StepShape& shape, const StepCosts& costs, Order order) {
  TaskGraph graph = repeat_step(step, kSteps);
  assign_costs(graph, ideal_table(shape, costs));
  return steady_step_s(graph, simulate(graph, {.order = order, .data_ready_s = {}})) - costs.forward_s -
         costs.backward_s;
}

// Calls `check` for every host cost, forward time and backward time of the grid.
void over_grid(const std::function<void(const StepCosts&)>& check) {
  for (const double forward : {0.5, 1.0, 1.7}) {
    for (const double backward : {1.0, 2.0, 3.1}) {
      for (const double ratio : {0.1, 0.25, 0.5, 1.0, 1.3, 2.0, 4.0}) {
        const StepCosts costs{forward, backward, ratio * (forward + backward)};
        SCOPED_TRACE(testing::Message() << "T_f " << forward << " T_b " << backward << " C " << costs.host_update_s);
        check(costs);
      }
    }
  }
}

// Within (C + T_f) / L of the closed form for every L of the grid, so the difference vanishes as L grows.
void expect_regime(const std::function<StepGraph(const StepShape&)>& build, bool clip, Order order,
                   const std::function<double(const StepCosts&)>& closed_form, int32_t num_pieces = 1) {
  for (const int32_t blocks : {4, 24, 96}) {
    for (const int32_t accumulate : {1, 3}) {
      SCOPED_TRACE(testing::Message() << blocks << " blocks, " << accumulate << " micro-batches");
      StepShape shape = equal_blocks(blocks, clip, num_pieces);
      shape.accumulate = accumulate;
      shape.order = ComputeOrder::kLayerMajor;
      over_grid([&](const StepCosts& costs) {
        const double bound = (costs.host_update_s + costs.forward_s) / blocks + kClock_s;
        EXPECT_NEAR(stall_of(build(shape), shape, costs, order), closed_form(costs), bound);
      });
    }
  }
}

StepGraph exact(const StepShape& shape) { return exact_overlap_step(shape); }

// An update is not interrupted: the first block, whose gradient is the last to come, may wait for one that has just
// begun and then takes its own time, 2 C / L in all with whole blocks. In P pieces it is (1 + 1 / P) C / L, which
// matters only while C <= T_f + T_b, so 1 + T_b / T_f pieces keep the bound: 3 for most models, 7.2 in this grid.
TEST(Regimes, DeadlineOrderHidesTheUpdateBehindBackwardAndForward) {
  expect_regime(exact, false, Order::kDeadline, stall_in_deadline_order, kPieces);
}

TEST(Regimes, ArrivalOrderHidesItBehindBackwardOnly) {
  expect_regime(exact, false, Order::kArrival, stall_in_arrival_order);
}

TEST(Regimes, GlobalClipHidesItBehindForwardOnly) {
  expect_regime(exact, true, Order::kDeadline, [](const auto& costs) { return stall_with_global_clip(costs); });
}

TEST(Regimes, DeviceShareGivesTheHostTime) {
  for (const int32_t quarters : {1, 2, 3, 4}) {
    expect_regime([&](const StepShape& shape) { return exact_overlap_step(shape, shape.num_blocks() * quarters / 4); },
                  true, Order::kDeadline,
                  [&](const StepCosts& costs) { return stall_with_global_clip(costs, quarters / 4.0); });
  }
}

TEST(Regimes, TheSmallestDeviceShareLeavesNoStall) {
  const int32_t blocks = 192;
  const StepShape shape = equal_blocks(blocks, true);
  over_grid([&](const StepCosts& costs) {
    const double share = device_share_without_stall(costs);
    EXPECT_NEAR(stall_with_global_clip(costs, share), 0, 1e-12);
    const auto on_device = static_cast<int32_t>(share * blocks + 0.999);
    const double bound = (costs.host_update_s + costs.forward_s) / blocks;
    EXPECT_LE(stall_of(exact_overlap_step(shape, on_device), shape, costs, Order::kDeadline), bound);
    if (share > 0.1) {
      EXPECT_GT(stall_with_global_clip(costs, share - 0.1), 0);
    }
  });
}

TEST(Regimes, WithoutOverlapEverythingIsWaitedFor) {
  expect_regime(no_overlap_step, true, Order::kDeadline,
                [](const auto& costs) { return stall_without_overlap(costs); });
  expect_regime(no_overlap_step, false, Order::kArrival,
                [](const auto& costs) { return stall_without_overlap(costs); });
}

TEST(Regimes, WithoutOverlapBothLinksAreWaitedForToo) {
  const StepShape shape = equal_blocks(10, true);
  const StepCosts costs{1, 2, 3};
  CostTable table = ideal_table(shape, costs);
  table.of(LaneKind::kD2h).seconds_per_byte = 2e-5;
  table.of(LaneKind::kH2d).seconds_per_byte = 3e-5;
  TaskGraph graph = repeat_step(no_overlap_step(shape), kSteps);
  assign_costs(graph, table);
  EXPECT_NEAR(steady_step_s(graph, simulate(graph)), 3 + stall_without_overlap(costs, 0.2 + 0.3), kClock_s);
}

TEST(Regimes, ResidentNeverStalls) {
  const StepShape shape = equal_blocks(8, true);
  EXPECT_NEAR(stall_of(resident_step(shape), shape, {1, 2, 3}, Order::kDeadline), 0, kClock_s);
}

TEST(Regimes, ConvergeAsBlocksGetSmaller) {
  const StepCosts costs{1, 2, 3.7};
  double last = 1e9;
  for (const int32_t blocks : {8, 32, 128, 512}) {
    const StepShape shape = equal_blocks(blocks, true);
    const double stall = stall_of(exact_overlap_step(shape), shape, costs, Order::kDeadline);
    const double miss = std::abs(stall - stall_with_global_clip(costs));
    EXPECT_LT(miss, last / 2);
    last = miss;
  }
}

TEST(Regimes, DeadlineOrderIsNeverWorseThanArrivalOrder) {
  for (const bool clip : {false, true}) {
    for (const int32_t blocks : {3, 16, 40}) {
      const StepShape shape = equal_blocks(blocks, clip);
      over_grid([&](const StepCosts& costs) {
        const StepGraph step = exact_overlap_step(shape);
        EXPECT_LE(stall_of(step, shape, costs, Order::kDeadline),
                  stall_of(step, shape, costs, Order::kArrival) + kClock_s);
      });
    }
  }
}

}  // namespace
}  // namespace headrace::graph
