#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "headrace/base/errors.h"
#include "headrace/graph/simulator.h"
#include "headrace/graph/stall.h"
#include "headrace/graph/validate.h"
#include "tests/graph/random_steps.h"
#include "tests/graph/recorded_run.h"

namespace headrace::graph {
namespace {

using testing::HasSubstr;

// A forward that waits for the host update of `steps_back` steps before, and the host update after it.
StepGraph delayed_step(int64_t steps_back) {
  StepGraph step;
  step.graph.set_lanes(LaneKind::kCompute, 1);
  step.graph.set_lanes(LaneKind::kHostUpdate, 2);
  const int32_t forward = step.graph.add({.kind = TaskKind::kForward, .block = 0});
  step.graph.connect(forward,
                     step.graph.add({.kind = TaskKind::kHostUpdate, .lane = LaneKind::kHostUpdate, .block = 0}));
  step.wait_for_previous({.kind = TaskKind::kHostUpdate, .block = 0, .steps_back = steps_back}, forward);
  return step;
}

TEST(StepsBack, JoinedStepsWaitForTheStepTheyName) {
  for (const int64_t back : {1, 2, 3}) {
    const TaskGraph graph = repeat_step(delayed_step(back), 5);
    std::vector<Edge> expected;
    for (int32_t step = 0; step < 5; ++step) {
      expected.push_back({2 * step, 2 * step + 1});
      if (step >= back) expected.push_back({2 * (step - static_cast<int32_t>(back)) + 1, 2 * step});
    }
    EXPECT_EQ(graph.edges, expected) << back;
  }
}

TEST(StepsBack, TheSimulatorLetsThemHideALongerUpdate) {
  for (const int64_t back : {1, 2, 3}) {
    TaskGraph graph = repeat_step(delayed_step(back), 40);
    for (Task& task : graph.tasks) task.cost_s = task.kind == TaskKind::kForward ? 1 : 2;
    EXPECT_NEAR(steady_step_s(graph, simulate(graph)), 3.0 / static_cast<double>(back), 1e-9);
  }
}

TEST(StepsBack, LessThanOneIsRefused) {
  const std::array<StepGraph, 2> steps = {delayed_step(0), delayed_step(0)};
  EXPECT_THROW(join_steps(steps), InternalError);
  Executor executor(all_lanes(), [](const Task&, int32_t) {});
  EXPECT_THROW(executor.run_step(delayed_step(0)), InternalError);
  EXPECT_THROW(executor.run_step(delayed_step(-1)), InternalError);
  executor.run_step(delayed_step(1));
}

// The update of step 0 ends only when the forward of step 2 has begun; that of step 3 must have waited for it.
TEST(StepsBack, TheExecutorWaitsForThatStepAndNoOther) {
  std::latch third_runs(1);
  std::atomic<bool> has_ended = false, was_in_time = false;
  Executor executor(all_lanes(), [&](const Task& task, int32_t) {
    if (task.kind == TaskKind::kForward && task.step == 2) third_runs.count_down();
    if (task.kind == TaskKind::kForward && task.step == 3) was_in_time = has_ended.load();
    if (task.kind != TaskKind::kHostUpdate || task.step != 0) return;
    third_runs.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    has_ended = true;
  });
  for (int step = 0; step < 4; ++step) executor.run_step(delayed_step(3));
  executor.drain();
  EXPECT_TRUE(was_in_time);
}

// Of steps that were held because a host update had not ended, and of those that were dropped.
TEST(StepsBack, AStepThatIsStillThereMustHaveTheTaskAndOneThatHasEndedNeedNot) {
  std::latch may_end(1);
  Executor executor(all_lanes(), [&](const Task& task, int32_t) {
    if (task.kind == TaskKind::kHostUpdate && task.step == 0) may_end.wait();
  });
  StepGraph forward_only;
  forward_only.graph.set_lanes(LaneKind::kCompute, 1);
  forward_only.graph.add({.kind = TaskKind::kForward, .block = 0});
  executor.run_step(delayed_step(1));
  executor.run_step(forward_only);
  EXPECT_THROW(executor.run_step(delayed_step(1)), InternalError);
  executor.run_step(forward_only);
  EXPECT_THROW(executor.run_step(delayed_step(2)), InternalError);
  may_end.count_down();
  executor.drain();
  executor.run_step(delayed_step(2));
  executor.drain();
}

// Every task's predecessors have ended when it starts, whether their steps are still held or not.
void expect_random_run_sound(uint64_t seed, int64_t recorded_steps) {
  RandomSteps random(seed);
  std::vector<StepGraph> steps;
  for (int i = 0; i < 10; ++i) steps.push_back(random.next());
  const TaskGraph graph = join_steps(steps);
  ExecutorSettings settings = all_lanes();
  settings.order = seed % 2 == 0 ? Order::kDeadline : Order::kArrival;
  settings.recorded_steps = recorded_steps;
  std::mutex mutex;
  std::set<std::string> started, ended;
  const Neighbours predecessors = predecessors_of(graph);
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < graph.tasks.size(); ++i) index[name_of(graph.tasks[i])] = i;
  Executor executor(settings, [&](const Task& task, int32_t) {
    {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(started.insert(name_of(task)).second);
      for (const int32_t before : predecessors[index.at(name_of(task))]) {
        EXPECT_TRUE(ended.contains(name_of(graph.tasks[static_cast<size_t>(before)])));
      }
    }
    if (mix_seed(seed, index.at(name_of(task))) % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    const std::lock_guard lock(mutex);
    ended.insert(name_of(task));
  });
  for (const StepGraph& step : steps) executor.run_step(step);
  executor.drain();
  EXPECT_EQ(ended.size(), graph.tasks.size());
  if (recorded_steps == 10) {
    expect_sound(executor.recording());
    EXPECT_EQ(executor.recording().graph.edges, graph.edges);
  }
}

TEST(StepsBack, RandomStepsRunSoundly) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    expect_random_run_sound(seed, seed % 3 == 0 ? 10 : 0);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(StepsBack, RandomStepsAreValidAndSimulateSoundly) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomSteps random(seed);
    std::vector<StepGraph> steps;
    for (int i = 0; i < 10; ++i) steps.push_back(random.next());
    TaskGraph graph = join_steps(steps);
    for (size_t i = 0; i < graph.tasks.size(); ++i) graph.tasks[i].cost_s = 1e-3 * static_cast<double>(i % 4);
    const std::vector<Fault> faults = faults_of(graph);
    ASSERT_TRUE(faults.empty()) << "seed " << seed << ": " << faults.front().text;
    if (!graph.tasks.empty()) expect_sound(Recording{graph, simulate(graph)});
  }
}

// As before an evaluation: nothing to compute but what waits for other lanes, and a step with nothing to compute.
TEST(StepsBack, AStepMayHaveNoForwardAndNothingToCompute) {
  StepGraph settling;
  for (const LaneKind lane : {LaneKind::kCompute, LaneKind::kHostUpdate, LaneKind::kH2d}) {
    settling.graph.set_lanes(lane, 1);
  }
  settling.graph.add({.kind = TaskKind::kFetch, .lane = LaneKind::kH2d, .block = 0});
  settling.graph.add({.kind = TaskKind::kMerge, .block = 0});
  settling.graph.connect(0, 1);
  settling.wait_for_previous({.kind = TaskKind::kHostUpdate, .block = 0}, 0);
  StepGraph host_only;
  host_only.graph.set_lanes(LaneKind::kHostUpdate, 1);
  host_only.graph.add({.kind = TaskKind::kHostUpdate, .lane = LaneKind::kHostUpdate, .block = 0});
  ExecutorSettings settings = all_lanes();
  settings.recorded_steps = 4;
  Executor executor(settings, [](const Task& task, int32_t) {
    if (task.kind == TaskKind::kHostUpdate) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  for (const StepGraph& step : {delayed_step(1), settling, host_only, settling}) executor.run_step(step);
  executor.drain();
  const Recording recording = executor.recording();
  expect_sound(recording);
  const std::vector<int64_t> ends = step_ends_ns(recording.graph, recording.timeline);
  EXPECT_EQ(ends[2], ends[1]);
  EXPECT_GE(executor.stall_s(), 0.003);
  const Window whole = whole_run(recording.timeline);
  const StallTable stall = attribute_stall(recording.graph, recording.timeline, whole);
  EXPECT_EQ(stall.idle_ns, whole.length_ns() - busy_ns(recording.graph, recording.timeline, LaneKind::kCompute, whole));
}

// One name on three lanes, as a migration has it.
TEST(StepsBack, ATaskIsNamedByItsLaneTooWhereThereAreSeveral) {
  StepGraph step;
  for (const LaneKind lane : {LaneKind::kHostUpdate, LaneKind::kH2d, LaneKind::kCompute}) {
    step.graph.set_lanes(lane, 1);
    const int32_t adopt = step.graph.add({.kind = TaskKind::kAdopt, .lane = lane, .block = 3});
    step.wait_for_previous({.kind = TaskKind::kAdopt, .block = 3, .lane = lane}, adopt);
  }
  step.wait_for_previous({.kind = TaskKind::kAdopt, .block = 3}, 1);
  EXPECT_TRUE(faults_of(step.graph).empty());
  const TaskGraph graph = repeat_step(step, 2);
  EXPECT_EQ(graph.edges, (std::vector<Edge>{{0, 3}, {1, 4}, {2, 5}, {2, 4}}));
  EXPECT_EQ(name_of(graph.tasks[4]), "adopt(block 3, step 1) on h2d");
  step.wait_for_previous({.kind = TaskKind::kAdopt, .block = 3, .lane = LaneKind::kD2h}, 1);
  try {
    repeat_step(step, 2);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("waits for adopt(block 3, step 0) on d2h, which does not exist."));
  }
  step.graph.tasks[1].lane = LaneKind::kCompute;
  EXPECT_EQ(faults_of(step.graph).front().kind, FaultKind::kRepeatedTask);
}

}  // namespace
}  // namespace headrace::graph
