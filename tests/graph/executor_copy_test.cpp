// What a copy of the training state asks of the executor: that steps end, and that later ones do not begin their host
// work before it is made.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "headrace/base/errors.h"
#include "headrace/graph/exact_overlap_step.h"
#include "tests/graph/equal_blocks.h"
#include "tests/graph/recorded_run.h"

namespace headrace::graph {
namespace {

using std::chrono::milliseconds;

bool has_ended(const std::future<void>& future) {
  return future.wait_for(milliseconds(0)) == std::future_status::ready;
}

// Of a step after which nothing of the next one needs its updates.
StepGraph independent_step() {
  StepGraph step = exact_overlap_step(equal_blocks(4));
  step.from_previous.clear();
  return step;
}

TEST(ExecutorCopy, ItWaitsForTheStepsBeforeAndNoOthers) {
  std::latch first(1);
  Executor executor(all_lanes(1), [&](const Task& task, int32_t) {
    if (task.kind == TaskKind::kHostUpdate && task.step == 0) first.wait();
  });
  executor.run_step(independent_step());
  const auto held = executor.hold_host_work();
  executor.run_step(independent_step());
  const auto waits = std::async(std::launch::async, [&] { held->wait_for_earlier(); });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(has_ended(waits));
  first.count_down();
  waits.wait();  // while the second step's updates stand
}

TEST(ExecutorCopy, WhatHasEndedHasEndedWhateverFailsLater) {
  Executor executor(all_lanes(1), [&](const Task& task, int32_t) {
    if (task.step == 1) throw DeviceError("test.work", "the second step failed.");
  });
  executor.run_step(independent_step());
  executor.drain();
  const auto held = executor.hold_host_work();
  EXPECT_THROW(executor.run_step(independent_step()), DeviceError);
  held->wait_for_earlier();
  held->release();
  EXPECT_THROW(executor.drain(), DeviceError);
}

TEST(ExecutorCopy, AFailureWakesWhoWaits) {
  std::latch begins(1);
  Executor executor(all_lanes(1), [&](const Task& task, int32_t) {
    if (task.kind != TaskKind::kHostUpdate) return;
    begins.wait();
    throw DeviceError("test.work", "an update failed.");
  });
  executor.run_step(independent_step());
  const auto held = executor.hold_host_work();
  auto waits = std::async(std::launch::async, [&] { held->wait_for_earlier(); });
  std::this_thread::sleep_for(milliseconds(5));
  begins.count_down();
  EXPECT_THROW(waits.get(), DeviceError);
}

TEST(ExecutorCopy, WhoWaitsForALaneThatHangsLearnsWhichItIs) {
  ExecutorSettings settings = all_lanes(1);
  settings.deadline_s = 0.05;
  const auto ends = std::make_shared<std::latch>(1);  // the lane that is left behind wakes when this test is gone
  Executor executor(settings, [ends](const Task& task, int32_t) {
    if (task.kind == TaskKind::kHostUpdate) ends->wait();
  });
  executor.run_step(independent_step());
  const auto held = executor.hold_host_work();
  try {
    held->wait_for_earlier();
    ADD_FAILURE() << "nothing hung";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("host_update"), std::string::npos) << error.what();
  }
  ends->count_down();
}

// Steps go on, their copies too; their updates stand until their block is released, those of earlier steps do not.
TEST(ExecutorCopy, HeldHostWorkWaitsForItsBlock) {
  std::latch first(1);
  std::mutex mutex;
  std::set<std::pair<int64_t, int32_t>> updated;  // step, block
  Executor executor(all_lanes(1), [&](const Task& task, int32_t) {
    if (task.kind != TaskKind::kHostUpdate) return;
    if (task.step == 0) first.wait();
    const std::lock_guard lock(mutex);
    updated.emplace(task.step, task.block);
  });
  const auto num_updated = [&](int64_t step) {
    const std::lock_guard lock(mutex);
    return std::ranges::count_if(updated, [&](const auto& each) { return each.first == step; });
  };
  executor.run_step(independent_step());
  const auto held = executor.hold_host_work();
  for (int64_t step = 1; step < 3; ++step) executor.run_step(independent_step());
  first.count_down();
  held->wait_for_earlier();  // though the lane has work of later steps that is due
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(num_updated(0), 4);
  EXPECT_EQ(num_updated(1) + num_updated(2), 0);
  held->release(2);
  while (num_updated(1) + num_updated(2) < 2) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(20));
  {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(updated.contains({1, 2}) && updated.contains({2, 2}));
    EXPECT_EQ(updated.size(), 6u);
  }
  auto released = std::async(std::launch::async, [&] { executor.wait_for_release(); });
  EXPECT_FALSE(has_ended(released));
  held->release();
  released.get();
  executor.drain();
  EXPECT_EQ(num_updated(1) + num_updated(2), 8);
}

TEST(ExecutorCopy, AnotherHoldWaitsForTheEndOfTheFirst) {
  std::atomic<int> num_updates = 0;
  Executor executor(all_lanes(1),
                    [&](const Task& task, int32_t) { num_updates += task.kind == TaskKind::kHostUpdate; });
  auto held = executor.hold_host_work();
  auto second = std::async(std::launch::async, [&] { return executor.hold_host_work(); });
  EXPECT_EQ(second.wait_for(milliseconds(10)), std::future_status::timeout);
  held.reset();
  held = second.get();
  executor.run_step(independent_step());
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(num_updates, 0);
  held.reset();
  executor.drain();
  EXPECT_EQ(num_updates, 4);
}

TEST(ExecutorCopy, AHoldMayOutliveItsExecutor) {
  std::atomic<int> num_updates = 0;
  std::shared_ptr<Executor::HeldWork> held;
  {
    Executor executor(all_lanes(2),
                      [&](const Task& task, int32_t) { num_updates += task.kind == TaskKind::kHostUpdate; });
    held = executor.hold_host_work();
    executor.run_step(independent_step());
  }
  held->release(1);
  held->release();
  EXPECT_EQ(num_updates, 0);
}

}  // namespace
}  // namespace headrace::graph
