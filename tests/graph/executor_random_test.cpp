#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "headrace/base/rng.h"
#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/no_overlap_step.h"
#include "tests/graph/equal_blocks.h"
#include "tests/graph/folded_model.h"
#include "tests/graph/recorded_run.h"

namespace headrace::graph {
namespace {

constexpr int64_t kSteps = 3;
constexpr uint64_t kSchedules = 1000;

struct Plan {
  StepShape shape;
  int32_t num_device_blocks = 0;
  StepGraph step;
  ExecutorSettings settings;
};

StepShape random_shape(Rng& rng) {
  StepShape shape = equal_blocks(static_cast<int32_t>(1 + rng.below(6)), rng.below(2) == 0);
  shape.accumulate = static_cast<int32_t>(1 + rng.below(3));
  shape.recompute = rng.below(3) == 0;
  shape.order = rng.below(2) == 0 ? ComputeOrder::kLayerMajor : ComputeOrder::kMicroBatchMajor;
  shape.host_workers = static_cast<int32_t>(1 + rng.below(3));
  shape.is_tied = rng.below(2) == 0;
  for (BlockShape& block : shape.blocks) block.num_pieces = static_cast<int32_t>(1 + rng.below(4));
  if (rng.below(2) == 0 && shape.blocks.front().num_pieces > 1) shape.needed_share = 0.3;
  if (shape.accumulate == 1 || shape.order == ComputeOrder::kLayerMajor) {
    shape.gradient_slots = static_cast<int32_t>(rng.below(4));
  }
  return shape;
}

Plan random_plan(Rng& rng) {
  Plan plan;
  plan.shape = random_shape(rng);
  if (rng.below(4) == 0) {
    plan.shape.gradient_slots = 0;
    plan.step = no_overlap_step(plan.shape);
  } else {
    const auto blocks = static_cast<uint64_t>(plan.shape.num_blocks());
    plan.num_device_blocks = rng.below(2) == 0 ? 0 : static_cast<int32_t>(rng.below(blocks + 1));
    plan.step = exact_overlap_step(plan.shape, plan.num_device_blocks);
  }
  plan.settings = all_lanes(plan.shape.host_workers);
  plan.settings.order = rng.below(2) == 0 ? Order::kDeadline : Order::kArrival;
  plan.settings.recorded_steps = kSteps;
  return plan;
}

// Each task of the run sleeps, or not, as the seed says.
void delay(uint64_t seed, const Task& task) {
  uint64_t own = seed;
  for (const int64_t part : {int64_t{task.block}, int64_t{task.micro_batch}, int64_t{task.piece}, task.step}) {
    own = mix_seed(own, static_cast<uint64_t>(part + 1));
  }
  Rng rng(mix_seed(own, static_cast<uint64_t>(task.kind)));
  if (rng.below(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng.below(60)));
}

TEST(ExecutorRandom, AThousandSchedulesWithDelaysEqualResident) {
  for (uint64_t seed = 0; seed < kSchedules; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Plan plan = random_plan(rng);
    SCOPED_TRACE(testing::Message() << plan.shape.num_blocks() << " blocks, " << plan.num_device_blocks
                                    << " on the device, " << plan.shape.gradient_slots << " slots, tied "
                                    << plan.shape.is_tied << ", needed share " << plan.shape.needed_share);
    FoldedModel model(plan.shape, plan.num_device_blocks);
    Executor executor(plan.settings, [&](const Task& task, int32_t) {
      delay(seed, task);
      model.work(task);
    });
    for (int64_t step = 0; step < kSteps; ++step) executor.run_step(plan.step);
    executor.drain();
    ASSERT_EQ(model.state(), resident_state(plan.shape, kSteps));
    expect_sound(executor.recording());
    if (HasFatalFailure()) return;
  }
}

// The check can fail: without its cross-step edges the next step reads weights that are too old.
TEST(ExecutorRandom, AMissingEdgeShowsInTheResult) {
  const StepShape shape = equal_blocks(3);
  StepGraph step = exact_overlap_step(shape);
  step.from_previous.clear();
  FoldedModel model(shape);
  std::mutex mutex;
  std::atomic<bool> is_over = false;  // with the last step's compute tasks; the other lanes wait for it
  Executor executor(all_lanes(), [&](const Task& task, int32_t) {
    if (task.lane != LaneKind::kCompute) is_over.wait(false);
    const std::lock_guard lock(mutex);  // the edges no longer keep the lanes apart
    model.work(task);
  });
  for (int64_t i = 0; i < kSteps; ++i) executor.run_step(step);
  is_over = true;
  is_over.notify_all();
  executor.drain();
  EXPECT_NE(model.state(), resident_state(shape, kSteps));
}

}  // namespace
}  // namespace headrace::graph
