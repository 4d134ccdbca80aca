#include "headrace/graph/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "headrace/base/errors.h"
#include "headrace/graph/chrome_trace.h"
#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/resident_step.h"
#include "headrace/graph/stall.h"
#include "tests/graph/equal_blocks.h"
#include "tests/graph/recorded_run.h"

namespace headrace::graph {
namespace {

using std::chrono::milliseconds;

void nothing(const Task&, int32_t) {}

TEST(Executor, ComputeRunsOnTheCallerAndEachLaneOnAThreadOfItsOwn) {
  std::mutex mutex;
  std::map<std::pair<LaneKind, int32_t>, std::set<std::thread::id>> threads;
  ExecutorSettings settings = all_lanes(3);
  std::atomic<int> num_started = 0;
  settings.on_lane_start = [&](LaneKind kind, int32_t) { num_started += kind == LaneKind::kCompute ? 100 : 1; };
  StepShape shape = equal_blocks(4, true);
  shape.host_workers = 3;
  {
    Executor executor(settings, [&](const Task& task, int32_t lane_index) {
      const std::lock_guard lock(mutex);
      threads[{task.lane, lane_index}].insert(std::this_thread::get_id());
    });
    for (int step = 0; step < 50; ++step) executor.run_step(exact_overlap_step(shape));
    executor.drain();
  }
  EXPECT_EQ(num_started, 8);  // h2d, d2h, two file lanes, net and three workers
  for (const auto& [lane, ids] : threads) {
    EXPECT_EQ(ids.size(), 1u) << name_of(lane.first, lane.second);
    EXPECT_EQ(ids.contains(std::this_thread::get_id()), lane.first == LaneKind::kCompute);
  }
}

TEST(Executor, AStepCarriesItsNumber) {
  std::vector<int64_t> steps;
  Executor executor(all_lanes(), [&](const Task& task, int32_t) { steps.push_back(task.step); });
  for (int step = 0; step < 3; ++step) executor.run_step(resident_step(equal_blocks(1)));
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 0, 0, 1, 1, 1, 2, 2, 2}));
}

// The update of block 1 at step 0 does not end before the forward of block 0 at step 1 has run.
TEST(Executor, ASlowUpdateRunsWhileTheNextStepsEarlyForwardsDo) {
  std::latch forward_ran(1);
  Executor executor(all_lanes(), [&](const Task& task, int32_t) {
    if (task.step == 0 && task.kind == TaskKind::kHostUpdate && task.block == 1) forward_ran.wait();
    if (task.step == 1 && task.kind == TaskKind::kForward && task.block == 0) forward_ran.count_down();
  });
  const StepGraph step = exact_overlap_step(equal_blocks(2));
  executor.run_step(step);
  executor.run_step(step);
  executor.drain();
}

// A forward makes the updates of three blocks ready at once, the block needed first added last; then a backward. The
// deadline of block 0 counts `due_steps` later.
StepGraph three_updates(int64_t due_steps = 0) {
  StepGraph step;
  step.graph.set_lanes(LaneKind::kCompute, 1);
  step.graph.set_lanes(LaneKind::kHostUpdate, 1);
  const int32_t forward = step.graph.add({.kind = TaskKind::kForward, .block = 0});
  for (int32_t block = 2; block >= 0; --block) {
    step.graph.connect(
        forward,
        step.graph.add(
            {.kind = TaskKind::kHostUpdate, .lane = LaneKind::kHostUpdate, .block = block, .deadline = block}));
    if (block == 0) step.graph.tasks.back().due_steps = due_steps;
  }
  step.graph.add({.kind = TaskKind::kBackward, .block = 0});
  return step;
}

// As 10 * step + block, over two steps. The first update runs until those of the second step are ready too.
std::vector<int64_t> order_of_updates(Order order, int64_t due_steps) {
  ExecutorSettings settings = all_lanes(1);
  settings.order = order;
  std::vector<int64_t> updated;
  std::latch all_ready(1);
  Executor executor(settings, [&](const Task& task, int32_t) {
    if (task.kind == TaskKind::kBackward && task.step == 1) all_ready.count_down();
    if (task.kind != TaskKind::kHostUpdate) return;
    all_ready.wait();
    updated.push_back(10 * task.step + task.block);
  });
  executor.run_step(three_updates(due_steps));
  executor.run_step(three_updates(due_steps));
  executor.drain();
  return updated;
}

TEST(Executor, ReadyTasksGoByStepThenDeadlineOrAsTheyArrived) {
  EXPECT_EQ(order_of_updates(Order::kDeadline, 0), (std::vector<int64_t>{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(order_of_updates(Order::kArrival, 0), (std::vector<int64_t>{2, 1, 0, 12, 11, 10}));
}

TEST(Executor, WhatIsDueStepsLaterGivesWayToWhatIsDueBefore) {
  EXPECT_EQ(order_of_updates(Order::kDeadline, 1), (std::vector<int64_t>{1, 2, 0, 11, 12, 10}));
  EXPECT_EQ(order_of_updates(Order::kDeadline, 3), (std::vector<int64_t>{1, 2, 11, 12, 0, 10}));
}

TEST(Executor, DrainWaitsForEveryTask) {
  std::atomic<int> num_done = 0;
  Executor executor(all_lanes(), [&](const Task& task, int32_t) {
    if (task.kind == TaskKind::kFetch) std::this_thread::sleep_for(milliseconds(3));
    ++num_done;
  });
  executor.drain();
  const StepGraph step = exact_overlap_step(equal_blocks(5));
  executor.run_step(step);
  executor.run_step(step);
  executor.drain();
  EXPECT_EQ(num_done, static_cast<int>(2 * step.graph.tasks.size()));
}

TEST(Executor, DestroyedWithoutDrainItDropsWhatHasNotStarted) {
  std::atomic<int> num_updates = 0;
  std::latch first_runs(1);
  {
    Executor executor(all_lanes(1), [&](const Task& task, int32_t) {
      if (task.kind != TaskKind::kHostUpdate) return;
      ++num_updates;
      first_runs.count_down();
      std::this_thread::sleep_for(milliseconds(50));
    });
    executor.run_step(exact_overlap_step(equal_blocks(20)));
    first_runs.wait();
  }
  EXPECT_EQ(num_updates, 1);
}

Recording run_with_slow_updates(double& stall_s) {
  ExecutorSettings settings = all_lanes(1);
  settings.recorded_steps = 6;
  Executor executor(settings, [&](const Task& task, int32_t) {
    if (task.kind == TaskKind::kHostUpdate) std::this_thread::sleep_for(milliseconds(4));
    if (task.kind == TaskKind::kForward) std::this_thread::sleep_for(milliseconds(1));
  });
  for (int step = 0; step < 8; ++step) {
    executor.run_step(exact_overlap_step(equal_blocks(3, true)));
    std::this_thread::sleep_for(milliseconds(2));  // the trainer has other things to do
  }
  executor.drain();
  stall_s = executor.stall_s();
  return executor.recording();
}

TEST(Executor, TheRecordingExplainsTheStall) {
  double stall_s = 0;
  const Recording recording = run_with_slow_updates(stall_s);
  const TaskGraph& graph = recording.graph;
  expect_sound(recording);
  EXPECT_EQ(graph.tasks.front().step, 2);
  EXPECT_EQ(graph.tasks.back().step, 7);
  ASSERT_EQ(recording.timeline.data_ready_ns.size(), 6u);
  EXPECT_EQ(recording.timeline.data_ready_ns[0], 0);
  const Window window = steady_window(graph, recording.timeline);
  const StallTable table = attribute_stall(graph, recording.timeline, window);
  EXPECT_EQ(table.idle_ns, window.length_ns() - busy_ns(graph, recording.timeline, LaneKind::kCompute, window));
  int64_t updates_ns = 0;
  for (const StallRow& row : table.rows) updates_ns += row.reason.kind == TaskKind::kHostUpdate ? row.ns : 0;
  EXPECT_GT(updates_ns, table.idle_ns / 2);
  std::ostringstream out;
  write_chrome_trace(out, graph, recording.timeline, "test");
  EXPECT_GT(out.str().size(), graph.tasks.size() * 50);
}

// Idle time is what the lane waits within run_step and what the trainer spends between two calls.
TEST(Executor, StallIsTheIdleTimeInsideSteps) {
  ExecutorSettings settings = all_lanes(1);
  settings.recorded_steps = 5;
  Executor executor(settings, [&](const Task& task, int32_t) {
    if (task.kind == TaskKind::kHostUpdate) std::this_thread::sleep_for(milliseconds(2));
  });
  for (int step = 0; step < 5; ++step) {
    executor.run_step(exact_overlap_step(equal_blocks(3)));
    std::this_thread::sleep_for(milliseconds(1));
  }
  executor.drain();
  const Recording recording = executor.recording();
  const std::vector<int64_t> ends = step_ends_ns(recording.graph, recording.timeline);
  const Window window{0, ends.back()};
  int64_t idle_ns = window.length_ns() - busy_ns(recording.graph, recording.timeline, LaneKind::kCompute, window);
  for (size_t step = 1; step < ends.size(); ++step) idle_ns -= recording.timeline.data_ready_ns[step] - ends[step - 1];
  EXPECT_EQ(to_ns(executor.stall_s()), idle_ns);
  EXPECT_GT(executor.stall_s(), 0.010);
}

TEST(Executor, TenThousandStepsKeepTheMemoryOfTwo) {
  const StepGraph step = exact_overlap_step(equal_blocks(2, true));
  for (const int64_t recorded : {0, 3}) {
    ExecutorSettings settings = all_lanes();
    settings.recorded_steps = recorded;
    Executor executor(settings, nothing);
    const auto num_tasks = static_cast<int64_t>(step.graph.tasks.size());
    int64_t most = 0;
    for (int64_t i = 0; i < 10000; ++i) {
      executor.run_step(step);
      most = std::max(most, executor.num_kept_tasks());
    }
    EXPECT_LE(most, num_tasks * std::max<int64_t>(2, recorded + 1));
    executor.drain();
    EXPECT_EQ(executor.num_kept_tasks(), num_tasks * std::max<int64_t>(1, recorded));
  }
}

TEST(Executor, NothingRecordedIsRefused) {
  Executor executor(all_lanes(), nothing);
  executor.run_step(resident_step(equal_blocks(1)));
  EXPECT_THROW(executor.recording(), InternalError);
  ExecutorSettings settings = all_lanes();
  settings.recorded_steps = 1;
  EXPECT_THROW(Executor(settings, nothing).recording(), InternalError);
}

TEST(Executor, AStepThatCannotRunIsRefusedAndTheRunGoesOn) {
  Executor executor(all_lanes(1), nothing);
  StepShape shape = equal_blocks(2);
  shape.host_workers = 2;
  EXPECT_THROW(executor.run_step(exact_overlap_step(shape)), InternalError);
  StepGraph cyclic = resident_step(equal_blocks(2));
  cyclic.graph.connect(1, 0);
  EXPECT_THROW(executor.run_step(cyclic), InternalError);
  StepGraph astray = resident_step(equal_blocks(2));
  astray.wait_for_previous({}, 77);
  EXPECT_THROW(executor.run_step(astray), InternalError);
  executor.run_step(resident_step(equal_blocks(2)));
  EXPECT_THROW(executor.run_step(exact_overlap_step(equal_blocks(2))), InternalError);  // no fetch before it
  executor.run_step(resident_step(equal_blocks(2)));
  executor.drain();
}

TEST(Executor, SettingsThatMakeNoExecutorAreRefused) {
  ExecutorSettings settings = all_lanes();
  EXPECT_THROW(Executor(settings, nullptr), InternalError);
  settings.deadline_s = 0;
  EXPECT_THROW(Executor(settings, nothing), InternalError);
  settings = all_lanes();
  settings.num_lanes[static_cast<size_t>(LaneKind::kH2d)] = 2;
  EXPECT_THROW(Executor(settings, nothing), InternalError);
  settings = all_lanes();
  settings.num_lanes[static_cast<size_t>(LaneKind::kCompute)] = 0;
  EXPECT_THROW(Executor(settings, nothing), InternalError);
}

}  // namespace
}  // namespace headrace::graph
