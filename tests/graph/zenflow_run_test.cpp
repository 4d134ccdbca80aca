#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "headrace/graph/executor.h"
#include "headrace/graph/simulator.h"
#include "headrace/graph/validate.h"
#include "tests/graph/recorded_run.h"
#include "tests/graph/zenflow_checks.h"
#include "tests/graph/zenflow_model.h"

namespace headrace::graph {
namespace {

constexpr int64_t kSteps = 30;

struct ZenflowRun {
  RandomZenflow random;
  ZenflowSchedule schedule;
  std::vector<StepGraph> steps;
  std::vector<bool> is_settling;

  // Settles once on the way, if `settles`, and at the end.
  explicit ZenflowRun(uint64_t seed, bool settles) : random(seed), schedule(random.shape, random.settings, seed) {
    for (int64_t step = 0; step < kSteps; ++step) {
      is_settling.push_back(step + 1 == kSteps || (settles && step == 13));
      steps.push_back(is_settling.back() ? settling_step(schedule.settle()) : zenflow_step(schedule.next()));
    }
  }
};

// Every lane at once: a copy when its buffer is filled or emptied, host work when the step's last compute task ends;
// in a settling step first. What ZenFlow means, without a graph.
std::vector<Task> immediate_order(const ZenflowRun& run) {
  std::vector<Task> order;
  for (size_t step = 0; step < run.steps.size(); ++step) {
    std::vector<Task> tasks = run.steps[step].graph.tasks;
    for (Task& task : tasks) task.step = static_cast<int64_t>(step);
    const auto add_copy = [&](const Task& of, LaneKind lane) {
      for (const Task& task : tasks) {
        if (task.lane == lane && task.slot == of.slot && task.block == of.block && task.piece == of.piece &&
            (task.kind == of.kind || (of.kind == TaskKind::kMerge && task.kind == TaskKind::kFetch) ||
             (of.kind == TaskKind::kReduce && task.kind == TaskKind::kOffload))) {
          order.push_back(task);
        }
      }
    };
    const auto add_host = [&] {
      for (const TaskKind kind : {TaskKind::kAccumulate, TaskKind::kAdopt, TaskKind::kHostUpdate}) {
        for (const Task& task : tasks) {
          if (task.lane == LaneKind::kHostUpdate && task.kind == kind) order.push_back(task);
        }
      }
    };
    if (run.is_settling[step]) add_host();
    for (const Task& task : tasks) {
      if (task.lane != LaneKind::kCompute) continue;
      if (task.kind == TaskKind::kMerge || task.kind == TaskKind::kAdopt) add_copy(task, LaneKind::kH2d);
      order.push_back(task);
      if (task.slot != kNoSlot) add_copy(task, LaneKind::kD2h);
    }
    if (!run.is_settling[step]) add_host();
  }
  return order;
}

std::vector<uint64_t> immediate_state(const ZenflowRun& run) {
  ZenflowModel model(run.random.shape, run.schedule, kSteps);
  for (const Task& task : immediate_order(run)) model.work(task);
  return model.state();
}

void delay(uint64_t seed, const Task& task) {
  uint64_t own = mix_seed(seed, static_cast<uint64_t>(task.kind));
  for (const int64_t part : {int64_t{task.block}, int64_t{task.piece}, task.step}) {
    own = mix_seed(own, static_cast<uint64_t>(part + 1));
  }
  Rng rng(own);
  if (rng.below(6) == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng.below(100)));
}

TEST(ZenflowRun, NoScheduleOfLanesChangesTheResult) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const ZenflowRun run(seed, true);
    ZenflowModel model(run.random.shape, run.schedule, kSteps);
    ExecutorSettings settings = all_lanes(run.random.shape.step.host_workers);
    settings.order = seed % 3 == 0 ? Order::kArrival : Order::kDeadline;
    Executor executor(settings, [&](const Task& task, int32_t) {
      delay(seed, task);
      model.work(task);
    });
    for (size_t step = 0; step < run.steps.size(); ++step) {
      executor.run_step(run.steps[step]);
      if (run.is_settling[step]) executor.drain();
    }
    ASSERT_EQ(model.state(), immediate_state(run));
  }
}

// Random costs, now and then of a host 100 times slower. Draining is no part of a graph, so nothing settles on the way.
TEST(ZenflowRun, SimulatedRunsAreValidAndKeepBuffersAndStateApart) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const ZenflowRun run(seed, false);
    TaskGraph graph = join_steps(run.steps);
    Rng rng(seed);
    const double slowness = seed % 4 == 0 ? 100 : 1;
    for (Task& task : graph.tasks) {
      task.cost_s = 1e-3 * static_cast<double>(rng.below(5));
      if (task.lane == LaneKind::kHostUpdate) task.cost_s *= slowness;
    }
    const std::vector<Fault> faults = faults_of(graph);
    ASSERT_TRUE(faults.empty()) << faults.front().text;
    const Timeline timeline =
        simulate(graph, {.order = seed % 3 == 0 ? Order::kArrival : Order::kDeadline, .data_ready_s = {}});
    expect_zenflow_sound(graph, timeline, run.schedule);
    if (HasFailure()) return;
  }
}

// The check can fail: one buffer more than there is.
TEST(ZenflowRun, TheCheckSeesABufferInUseTwice) {
  ZenflowShape shape = equal_zenflow_blocks(4, 2);
  ZenflowSchedule schedule(shape, {.interval = 1});
  std::vector<StepGraph> steps;
  for (int step = 0; step < 6; ++step) steps.push_back(zenflow_step(schedule.next()));
  TaskGraph graph = join_steps(steps);
  for (Task& task : graph.tasks) {
    task.cost_s = task.lane == LaneKind::kCompute ? 1 : 2;
    if (task.slot == 3) task.slot = 0;
  }
  EXPECT_NE(zenflow_fault(graph, simulate(graph), schedule), "");
}

// "offload on d2h, reduce on compute, in the next step": edges that stand for the same reason.
std::string sort_of(const TaskGraph& graph, const Edge& edge) {
  const Task& from = graph.tasks[static_cast<size_t>(edge.from)];
  const Task& to = graph.tasks[static_cast<size_t>(edge.to)];
  std::string text;
  for (const Task* task : {&from, &to}) {
    text += std::string(name_of(task->kind)) + " on " + std::string(name_of(task->lane)) + ", ";
  }
  if (from.kind == TaskKind::kReduce && from.block == kWholeModel) text += "of the whole model, ";
  return text + (from.step == to.step ? "in its step" : "later");
}

bool shows(const TaskGraph& graph, const ZenflowRun& run, const std::vector<uint64_t>& expected) {
  const Timeline timeline = simulate(graph);
  if (!zenflow_fault(graph, timeline, run.schedule).empty()) return true;
  std::vector<int32_t> order = topological_order(graph);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return timeline.runs[static_cast<size_t>(a)].start_ns < timeline.runs[static_cast<size_t>(b)].start_ns;
  });
  ZenflowModel model(run.random.shape, run.schedule, kSteps);
  for (const int32_t task : order) model.work(graph.tasks[static_cast<size_t>(task)]);
  return model.state() != expected;
}

// No edge is for nothing, and the checks see each that is missing: in some run its lack shows.
TEST(ZenflowRun, EveryEdgeBetweenLanesIsNeeded) {
  std::set<std::string> unneeded, needed;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const ZenflowRun run(seed, false);
    TaskGraph graph = join_steps(run.steps);
    Rng rng(seed);
    const double host = seed % 4 == 0 ? 100 : seed % 4 == 1 ? 10 : 1, links = seed % 3 == 0 ? 20 : 1;
    for (Task& task : graph.tasks) {
      const double slowness = task.lane == LaneKind::kHostUpdate ? host : task.lane == LaneKind::kCompute ? 1 : links;
      task.cost_s = 1e-3 * slowness * static_cast<double>(rng.below(5));
    }
    const std::vector<uint64_t> expected = immediate_state(run);
    ASSERT_FALSE(shows(graph, run, expected)) << "seed " << seed;
    std::set<std::string> sorts;
    for (const Edge& edge : graph.edges) {
      const std::string sort = sort_of(graph, edge);
      if (sort.find("on compute, ") == std::string::npos || sort.find("on compute, ") == sort.rfind("on compute, ")) {
        sorts.insert(sort);  // between compute tasks program order is enough
      }
    }
    for (const std::string& sort : sorts) {
      if (needed.contains(sort)) continue;
      TaskGraph mutant = graph;
      std::erase_if(mutant.edges, [&](const Edge& edge) { return sort_of(graph, edge) == sort; });
      (shows(mutant, run, expected) ? needed : unneeded).insert(sort);
    }
  }
  for (const std::string& sort : unneeded) EXPECT_TRUE(needed.contains(sort)) << sort;
  EXPECT_GE(needed.size(), 30u);
}

// The staleness bound holds by construction; that the device waits for it must not become a deadlock.
TEST(ZenflowRun, AHostAHundredTimesSlowerIsWaitedFor) {
  ZenflowShape shape = equal_zenflow_blocks(4, 2);
  shape.send_slots = shape.staging_slots = 1;
  for (const bool has_sum : {false, true}) {
    for (ZenflowBlock& block : shape.blocks) block.accumulate_bytes = has_sum ? 500 : 0;
    ZenflowSchedule schedule(shape, {.interval = 2, .migration = 0.3, .num_sums = 1, .num_slots = 2});
    ExecutorSettings settings = all_lanes(1);
    settings.recorded_steps = 12;
    Executor executor(settings, [](const Task& task, int32_t) {
      const bool is_host = task.lane == LaneKind::kHostUpdate;
      std::this_thread::sleep_for(std::chrono::microseconds(is_host ? 1000 : 10));
    });
    for (int64_t step = 0; step < settings.recorded_steps; ++step) executor.run_step(zenflow_step(schedule.next()));
    executor.drain();
    const Recording recording = executor.recording();
    expect_sound(recording);
    expect_zenflow_sound(recording.graph, recording.timeline, schedule);
    EXPECT_GT(executor.stall_s(), 0.02);
  }
}

}  // namespace
}  // namespace headrace::graph
