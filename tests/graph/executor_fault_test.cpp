#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>

#include "headrace/base/errors.h"
#include "headrace/graph/exact_overlap_step.h"
#include "tests/fault/record.h"
#include "tests/graph/equal_blocks.h"
#include "tests/graph/recorded_run.h"

namespace headrace::graph {
namespace {

using Clock = std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// What run_step or drain throws; empty when neither does.
std::string error_of(Executor& executor, const StepGraph& step, int64_t num_steps) {
  try {
    for (int64_t i = 0; i < num_steps; ++i) executor.run_step(step);
    executor.drain();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kLost = "the steps since the last checkpoint";

StepGraph step_of_all_kinds() {
  StepShape shape = equal_blocks(4, true);
  shape.recompute = true;
  shape.host_workers = 2;
  return exact_overlap_step(shape, 1);
}

TEST(ExecutorFault, AnErrorOfAnyTaskReachesTheTrainerAndEndsTheRun) {
  const StepGraph step = step_of_all_kinds();
  for (const TaskKind kind : {TaskKind::kForward, TaskKind::kRecompute, TaskKind::kBackward, TaskKind::kReduce,
                              TaskKind::kOffload, TaskKind::kHostUpdate, TaskKind::kDeviceUpdate, TaskKind::kFetch}) {
    SCOPED_TRACE(name_of(kind));
    for (int round = 0; round < 100; ++round) {
      const auto start = Clock::now();
      const int64_t at_step = round % 3;
      std::atomic<bool> has_thrown = false;
      {
        Executor executor(all_lanes(), [&](const Task& task, int32_t) {
          if (task.kind != kind || task.step != at_step || has_thrown.exchange(true)) return;
          throw DeviceError("test.work", name_of(task) + " failed.");
        });
        const std::string text = error_of(executor, step, 3);
        EXPECT_THAT(text, AllOf(HasSubstr(std::string(name_of(kind)) + "("),
                                HasSubstr("step " + std::to_string(at_step) + ") failed.")));
        EXPECT_EQ(error_of(executor, step, 1), text);
        EXPECT_THROW(executor.drain(), DeviceError);
      }
      ASSERT_LT(seconds_since(start), 2);
      fault::record("a worker throws", "a lane of the step: " + std::string(name_of(kind)), "",
                    {"the run ends at once with the worker's own error", kLost});
    }
  }
}

TEST(ExecutorFault, TheFirstOfManyErrorsIsKept) {
  std::latch second_started(1);
  std::atomic<int> num_throwing = 0;
  Executor executor(all_lanes(2), [&](const Task& task, int32_t) {
    if (task.kind != TaskKind::kHostUpdate) return;
    if (num_throwing++ == 0) {
      second_started.wait();
      throw RunError("test.work", "first.");
    }
    second_started.count_down();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    throw RunError("test.work", "second.");
  });
  StepShape shape = equal_blocks(2);
  shape.host_workers = 2;
  EXPECT_THAT(error_of(executor, exact_overlap_step(shape), 1), HasSubstr("first."));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_THAT(error_of(executor, exact_overlap_step(shape), 1), HasSubstr("first."));
}

TEST(ExecutorFault, NothingStartsAfterAnError) {
  std::atomic<int> num_after = 0;
  std::atomic<bool> has_thrown = false;
  {
    Executor executor(all_lanes(1), [&](const Task& task, int32_t) {
      if (has_thrown) ++num_after;
      if (task.kind != TaskKind::kHostUpdate) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the others become ready
      has_thrown = true;
      throw RunError("test.work", "broken.");
    });
    error_of(executor, exact_overlap_step(equal_blocks(30)), 4);
  }
  EXPECT_LE(num_after, 3);  // what compute and the two links had in hand
}

TEST(ExecutorFault, ALaneThatCannotStartEndsTheRun) {
  ExecutorSettings settings = all_lanes();
  settings.on_lane_start = [](LaneKind kind, int32_t lane_index) {
    if (kind == LaneKind::kHostUpdate && lane_index == 1) throw DeviceError("test.start", "no such core.");
  };
  for (int round = 0; round < 100; ++round) {
    Executor executor(settings, [](const Task&, int32_t) {});
    std::string text;  // the lane may take a moment
    while (text.empty()) text = error_of(executor, step_of_all_kinds(), 1);
    EXPECT_THAT(text, HasSubstr("no such core."));
    fault::record("a worker cannot start", "a lane of the step", "",
                  {"the run ends at once with the worker's own error", kLost});
  }
}

// What a task left behind may still touch.
struct Gate {
  std::mutex mutex;
  std::condition_variable wake;
  bool is_open = false;
  int num_passed = 0;

  void pass() {
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return is_open; });
    ++num_passed;
    wake.notify_all();
  }
  void open_and_wait_for(int count) {
    std::unique_lock lock(mutex);
    is_open = true;
    wake.notify_all();
    wake.wait(lock, [&] { return num_passed == count; });
  }
};

TEST(ExecutorFault, ATaskThatHangsIsNamedAndLeftBehind) {
  for (const bool in_drain : {false, true}) {
    const auto gate = std::make_shared<Gate>();
    const auto start = Clock::now();
    {
      ExecutorSettings settings = all_lanes(1);
      settings.deadline_s = 0.5;
      Executor executor(settings, [gate, in_drain](const Task& task, int32_t) {
        if (task.kind == TaskKind::kHostUpdate && task.block == 2 && task.step == (in_drain ? 1 : 0)) gate->pass();
      });
      const std::string text = error_of(executor, exact_overlap_step(equal_blocks(3)), 2);
      EXPECT_THAT(text, AllOf(HasSubstr("[graph.executor] lane host_update[0] has been running host_update(block 2, "),
                              HasSubstr("longer than the deadline of 0.5 s.")));
      EXPECT_EQ(error_of(executor, exact_overlap_step(equal_blocks(3)), 1), text);
    }
    EXPECT_GE(seconds_since(start), 0.5);
    EXPECT_LT(seconds_since(start), 10);
    gate->open_and_wait_for(1);
    fault::record("a worker hangs", "a lane of the step", "",
                  {"the run ends after --lane-deadline; the lane and its task are named", kLost});
  }
}

TEST(ExecutorFault, ALaneThatHangsWhileStartingIsNamed) {
  const auto gate = std::make_shared<Gate>();
  {
    ExecutorSettings settings = all_lanes(2);
    settings.deadline_s = 0.5;
    settings.on_lane_start = [gate](LaneKind kind, int32_t) {
      if (kind == LaneKind::kH2d) gate->pass();
    };
    Executor executor(settings, [](const Task&, int32_t) {});
    EXPECT_THAT(error_of(executor, step_of_all_kinds(), 2), HasSubstr("lane h2d has been starting for"));
  }
  gate->open_and_wait_for(1);
}

// Long tasks are no hang as long as each keeps the deadline; a slow compute task has none.
TEST(ExecutorFault, ManyTasksWithinTheDeadlineAreNoHang) {
  ExecutorSettings settings = all_lanes(1);
  settings.deadline_s = 0.5;
  Executor executor(settings, [](const Task& task, int32_t) {
    if (task.kind == TaskKind::kHostUpdate) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (task.kind == TaskKind::kReduce) std::this_thread::sleep_for(std::chrono::milliseconds(700));
  });
  EXPECT_EQ(error_of(executor, exact_overlap_step(equal_blocks(8, true)), 1), "");
}

}  // namespace
}  // namespace headrace::graph
