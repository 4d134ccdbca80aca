#include "headrace/graph/zenflow_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/graph/validate.h"
#include "tests/graph/zenflow_schedule.h"

namespace headrace::graph {
namespace {

// "merge1.0" is that of block 1's piece 0; a lane's tasks in the order of the graph.
std::string tasks_on(const StepGraph& step, LaneKind lane) {
  std::string text;
  for (const Task& task : step.graph.tasks) {
    if (task.lane != lane) continue;
    text += (text.empty() ? "" : " ") + std::string(name_of(task.kind));
    if (task.block != kWholeModel) text += std::to_string(task.block);
    if (task.piece != kWholeBlock) text += "." + std::to_string(task.piece);
  }
  return text;
}

const Task& find(const StepGraph& step, TaskKind kind, LaneKind lane, int32_t block, int32_t piece = kWholeBlock) {
  const auto found = std::find_if(step.graph.tasks.begin(), step.graph.tasks.end(), [&](const Task& task) {
    return task.kind == kind && task.lane == lane && task.block == block && task.piece == piece;
  });
  if (found == step.graph.tasks.end()) throw InternalError("test", "no such task.");
  return *found;
}

TEST(ZenflowStep, PutsEachTaskAtItsPlaceInTheProgram) {
  ZenflowShape shape = equal_zenflow_blocks(3);
  shape.blocks[0].num_pieces = 2;
  shape.blocks[0].merge = Merge::kBeforeForward;
  shape.blocks[0].adopts = shape.blocks[0].migrates = true;
  shape.blocks[1].merge = Merge::kAfterBackward;
  shape.blocks[1].flushes = true;
  shape.blocks[2].num_pieces = 0;
  const StepGraph step = zenflow_step(shape);
  EXPECT_EQ(tasks_on(step, LaneKind::kCompute),
            "merge0.0 merge0.1 adopt0.0 adopt0.1 forward0 forward1 forward2 "
            "backward2 reduce2 backward1 reduce1 merge1 backward0 reduce0.0 reduce0.1 "
            "reduce device_update0 device_update1 device_update2 release0.0 release0.1");
  EXPECT_EQ(tasks_on(step, LaneKind::kH2d), "fetch0.0 fetch0.1 adopt0.0 adopt0.1 fetch1");
  EXPECT_EQ(tasks_on(step, LaneKind::kD2h), "offload1 offload0.0 offload0.1 release0.0 release0.1");
  EXPECT_EQ(tasks_on(step, LaneKind::kHostUpdate), "adopt0.0 adopt0.1 host_update1");
}

TEST(ZenflowStep, MergesAfterTheLastBackwardAlsoOfSeveralMicroBatches) {
  ZenflowShape shape = equal_zenflow_blocks(2);
  shape.step.accumulate = 2;
  for (ZenflowBlock& block : shape.blocks) block.merge = Merge::kAfterBackward;
  EXPECT_EQ(tasks_on(zenflow_step(shape), LaneKind::kCompute),
            "forward0 forward1 backward1 forward0 forward1 backward1 reduce1 merge1 "
            "backward0 backward0 reduce0 merge0 reduce device_update0 device_update1");
  shape.step.order = ComputeOrder::kLayerMajor;
  EXPECT_EQ(tasks_on(zenflow_step(shape), LaneKind::kCompute),
            "forward0 forward0 forward1 forward1 backward1 backward1 reduce1 merge1 "
            "backward0 backward0 reduce0 merge0 reduce device_update0 device_update1");
}

TEST(ZenflowStep, MovesItsBytesOnceHoweverManyPieces) {
  for (const int32_t pieces : {1, 3}) {
    ZenflowShape shape = equal_zenflow_blocks(2, pieces);
    for (ZenflowBlock& block : shape.blocks) {
      block.accumulate_bytes = 2000;
      block.merge = Merge::kAfterBackward;
      block.flushes = block.migrates = block.adopts = true;
    }
    std::map<std::pair<LaneKind, TaskKind>, int64_t> bytes;
    for (const Task& task : zenflow_step(shape).graph.tasks) bytes[{task.lane, task.kind}] += task.bytes;
    std::erase_if(bytes, [](const auto& entry) { return entry.second == 0; });
    const std::map<std::pair<LaneKind, TaskKind>, int64_t> expected = {
        {{LaneKind::kH2d, TaskKind::kFetch}, 2000},
        {{LaneKind::kH2d, TaskKind::kAdopt}, 200},
        {{LaneKind::kD2h, TaskKind::kOffload}, 2000},
        {{LaneKind::kD2h, TaskKind::kRelease}, 200},
        {{LaneKind::kHostUpdate, TaskKind::kHostUpdate}, 6000},
        {{LaneKind::kHostUpdate, TaskKind::kAccumulate}, 4000},
        {{LaneKind::kHostUpdate, TaskKind::kAdopt}, 200}};
    EXPECT_EQ(bytes, expected);
  }
}

TEST(ZenflowStep, WithNothingDeferredNeedsNoOtherLane) {
  const StepGraph step = zenflow_step(equal_zenflow_blocks(2, 0));
  EXPECT_EQ(tasks_on(step, LaneKind::kCompute),
            "forward0 forward1 backward1 reduce1 backward0 reduce0 reduce device_update0 device_update1");
  EXPECT_TRUE(step.from_previous.empty());
  EXPECT_EQ(step.graph.lanes_of(LaneKind::kHostUpdate), 0);
  EXPECT_EQ(step.graph.lanes_of(LaneKind::kD2h), 0);
}

// What is needed before the next forward goes first, then what is needed by its backwards, last block first, in the
// step in which the merge stands.
TEST(ZenflowStep, HostWorkGoesByWhenItIsNeeded) {
  ZenflowShape shape = equal_zenflow_blocks(3);
  for (ZenflowBlock& block : shape.blocks) {
    block.flushes = block.migrates = true;
    block.accumulate_bytes = 10;
  }
  shape.blocks[1].due_steps = 1;
  shape.blocks[2].due_steps = 4;
  const StepGraph step = zenflow_step(shape);
  const auto due = [&](TaskKind kind, int32_t block) {
    const Task& task = find(step, kind, LaneKind::kHostUpdate, block);
    return std::pair(task.due_steps, task.deadline);
  };
  using Due = std::pair<int64_t, int64_t>;
  EXPECT_EQ(due(TaskKind::kHostUpdate, 0), Due(0, 0));
  EXPECT_EQ(due(TaskKind::kHostUpdate, 1), Due(0, 4));
  EXPECT_EQ(due(TaskKind::kHostUpdate, 2), Due(3, 3));
  EXPECT_EQ(due(TaskKind::kAdopt, 2), Due(0, 2));
  EXPECT_EQ(due(TaskKind::kAccumulate, 2), Due(0, 3));
  EXPECT_EQ(due(TaskKind::kAccumulate, 0), Due(0, 5));
}

TEST(ZenflowStep, BuffersGoRoundAndCopiesGoInTheirOrder) {
  ZenflowShape shape = equal_zenflow_blocks(2, 3);
  shape.send_slots = 4;
  shape.staging_slots = 2;
  shape.blocks[0].migrates = true;
  for (ZenflowBlock& block : shape.blocks) block.merge = Merge::kAfterBackward;
  std::map<LaneKind, std::vector<std::pair<int64_t, int32_t>>> copies;  // deadline and slot
  for (const Task& task : zenflow_step(shape).graph.tasks) {
    if (task.slot != kNoSlot) copies[task.lane].emplace_back(task.deadline, task.slot);
  }
  using Copies = std::vector<std::pair<int64_t, int32_t>>;
  EXPECT_EQ(copies[LaneKind::kD2h], (Copies{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 0}, {5, 1}, {6, 2}, {7, 3}, {8, 0}}));
  EXPECT_EQ(copies[LaneKind::kH2d], (Copies{{0, 0}, {1, 1}, {2, 0}, {3, 1}, {4, 0}, {5, 1}}));
  EXPECT_EQ(copies[LaneKind::kCompute].size(), 15u);
}

TEST(ZenflowStep, AfterADrainNothingEarlierIsWaitedFor) {
  ZenflowShape shape = equal_zenflow_blocks(2, 2);
  for (ZenflowBlock& block : shape.blocks) {
    block.accumulate_bytes = 10;
    block.merge = Merge::kBeforeForward;
    block.adopts = true;
    block.slot_freed_by = 2;
  }
  EXPECT_FALSE(zenflow_step(shape).from_previous.empty());
  shape.after_drain = true;
  EXPECT_TRUE(zenflow_step(shape).from_previous.empty());
  EXPECT_TRUE(settling_step(shape).from_previous.empty());
}

TEST(SettlingStep, UpdatesWhatHasArrivedThenMergesAll) {
  ZenflowShape shape = equal_zenflow_blocks(3);
  shape.blocks[0].merge = shape.blocks[1].merge = Merge::kBeforeForward;
  shape.blocks[0].flushes = true;
  shape.blocks[0].merge_from = 0;
  shape.blocks[1].merge_from = 2;
  shape.blocks[2].adopts = true;
  const StepGraph step = settling_step(shape);
  EXPECT_EQ(tasks_on(step, LaneKind::kCompute), "merge0 merge1 adopt2");
  EXPECT_EQ(tasks_on(step, LaneKind::kHostUpdate), "host_update0");
  std::vector<std::string> waits;  // for earlier steps
  for (const CrossStepEdge& edge : step.from_previous) {
    const Task& to = step.graph.tasks[static_cast<size_t>(edge.to)];
    waits.push_back(std::string(name_of(to.kind)) + std::to_string(to.block) + " for " +
                    std::string(name_of(edge.from.kind)) + " " + std::to_string(edge.from.steps_back) + " back");
  }
  const std::vector<std::string> expected = {"host_update0 for reduce 1 back", "host_update0 for offload 1 back",
                                             "fetch0 for reduce 1 back",       "fetch1 for reduce 1 back",
                                             "fetch1 for host_update 2 back",  "adopt2 for adopt 1 back"};
  EXPECT_EQ(waits, expected);
}

TEST(ZenflowStep, ShapesThatMakeNoStepAreRefused) {
  const auto refused = [](const std::function<void(ZenflowShape&)>& change, bool settles = false) {
    ZenflowShape shape = equal_zenflow_blocks(2);
    change(shape);
    EXPECT_THROW(settles ? settling_step(shape) : zenflow_step(shape), InternalError);
  };
  refused([](ZenflowShape& shape) { shape.blocks.clear(); });
  refused([](ZenflowShape& shape) { shape.send_slots = 0; });
  refused([](ZenflowShape& shape) { shape.staging_slots = 0; });
  refused([](ZenflowShape& shape) { shape.step.gradient_slots = 2; });
  refused([](ZenflowShape& shape) { shape.step.accumulate = 0; });
  refused([](ZenflowShape& shape) { shape.blocks[1].num_pieces = -1; });
  refused([](ZenflowShape& shape) { shape.blocks[1].due_steps = -1; });
  refused([](ZenflowShape& shape) { shape.blocks[1].slot_freed_by = -1; });
  refused([](ZenflowShape& shape) {
    shape.blocks[1].num_pieces = 0;
    shape.blocks[1].flushes = true;
  });
  refused([](ZenflowShape& shape) {
    shape.blocks[1].merge = Merge::kAfterBackward;
    shape.blocks[1].merge_from = 0;
  });
  refused([](ZenflowShape& shape) { shape.blocks[1].merge = Merge::kAfterBackward; }, true);
  refused([](ZenflowShape& shape) { shape.blocks[1].migrates = true; }, true);
  refused([](ZenflowShape& shape) { shape.blocks[1].flushes = true; }, true);
  refused([](ZenflowShape& shape) { shape.blocks[1].merge_from = 0; }, true);
}

}  // namespace
}  // namespace headrace::graph
