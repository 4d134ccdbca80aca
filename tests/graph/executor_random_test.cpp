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
  StepGraph step;
  ExecutorSettings settings;
};

Plan random_plan(Rng& rng) {
  Plan plan;
  plan.shape = equal_blocks(static_cast<int32_t>(1 + rng.below(6)), rng.below(2) == 0);
  plan.shape.accumulate = static_cast<int32_t>(1 + rng.below(3));
  plan.shape.recompute = rng.below(3) == 0;
  plan.shape.order = rng.below(2) == 0 ? ComputeOrder::kLayerMajor : ComputeOrder::kMicroBatchMajor;
  plan.shape.host_workers = static_cast<int32_t>(1 + rng.below(3));
  const auto blocks = static_cast<uint64_t>(plan.shape.num_blocks());
  plan.step = rng.below(4) == 0 ? no_overlap_step(plan.shape)
                                : exact_overlap_step(plan.shape, static_cast<int32_t>(rng.below(blocks + 1)));
  plan.settings = all_lanes(plan.shape.host_workers);
  plan.settings.order = rng.below(2) == 0 ? Order::kDeadline : Order::kArrival;
  plan.settings.recorded_steps = kSteps;
  return plan;
}

// Each task of the run sleeps, or not, as the seed says.
void delay(uint64_t seed, const Task& task) {
  Rng rng(mix_seed(seed, mix_seed(static_cast<uint64_t>(task.kind) * 100 + static_cast<uint64_t>(task.block + 1),
                                  static_cast<uint64_t>(task.step * 10 + task.micro_batch + 1))));
  if (rng.below(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng.below(60)));
}

std::vector<uint64_t> run_in_sequence(const Plan& plan) {
  FoldedModel model(plan.shape);
  const TaskGraph graph = repeat_step(plan.step, kSteps);
  for (const int32_t task : topological_order(graph)) model.work(graph.tasks[static_cast<size_t>(task)]);
  return model.state();
}

TEST(ExecutorRandom, AThousandSchedulesWithDelaysGiveTheSequentialResult) {
  for (uint64_t seed = 0; seed < kSchedules; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Plan plan = random_plan(rng);
    FoldedModel model(plan.shape);
    Executor executor(plan.settings, [&](const Task& task, int32_t) {
      delay(seed, task);
      model.work(task);
    });
    for (int64_t step = 0; step < kSteps; ++step) executor.run_step(plan.step);
    executor.drain();
    ASSERT_EQ(model.state(), run_in_sequence(plan));
    expect_sound(executor.recording());
    if (HasFatalFailure()) return;
  }
}

// The check can fail: without its cross-step edges the next step reads weights that are too old.
TEST(ExecutorRandom, AMissingEdgeShowsInTheResult) {
  Plan plan{equal_blocks(3), {}, all_lanes()};
  plan.step = exact_overlap_step(plan.shape);
  const std::vector<uint64_t> expected = run_in_sequence(plan);
  plan.step.from_previous.clear();
  FoldedModel model(plan.shape);
  std::mutex mutex;
  std::atomic<bool> is_over = false;  // with the last step's compute tasks; the other lanes wait for it
  Executor executor(plan.settings, [&](const Task& task, int32_t) {
    if (task.lane != LaneKind::kCompute) is_over.wait(false);
    const std::lock_guard lock(mutex);  // the edges no longer keep the lanes apart
    model.work(task);
  });
  for (int64_t step = 0; step < kSteps; ++step) executor.run_step(plan.step);
  is_over = true;
  is_over.notify_all();
  executor.drain();
  EXPECT_NE(model.state(), expected);
}

}  // namespace
}  // namespace headrace::graph
