#include "headrace/graph/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"
#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/no_overlap_step.h"
#include "headrace/graph/resident_step.h"
#include "tests/graph/equal_blocks.h"

namespace headrace::graph {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TaskGraph sound() { return repeat_step(exact_overlap_step(equal_blocks(4, true), 1), 3); }

// The only fault of the graph is of this kind.
std::string text_of_only(const TaskGraph& graph, FaultKind kind) {
  const std::vector<Fault> faults = faults_of(graph);
  EXPECT_EQ(faults.size(), 1u);
  if (faults.empty()) return "";
  EXPECT_EQ(faults.front().kind, kind) << faults.front().text;
  return faults.front().text;
}

void expect_sound_graphs(const StepShape& shape) {
  EXPECT_THAT(faults_of(repeat_step(resident_step(shape), 3)), IsEmpty());
  EXPECT_THAT(faults_of(repeat_step(no_overlap_step(shape), 3)), IsEmpty());
  for (int32_t on_device = 0; on_device <= shape.num_blocks(); ++on_device) {
    EXPECT_THAT(faults_of(repeat_step(exact_overlap_step(shape, on_device), 3)), IsEmpty());
  }
}

TEST(Validate, EveryBuilderMakesSoundGraphs) {
  for (const bool clip : {false, true}) {
    for (const bool recompute : {false, true}) {
      for (const auto order : {ComputeOrder::kMicroBatchMajor, ComputeOrder::kLayerMajor}) {
        StepShape shape = equal_blocks(5, clip);
        shape.recompute = recompute;
        shape.accumulate = 3;
        shape.order = order;
        shape.host_workers = 2;
        expect_sound_graphs(shape);
        shape.blocks[0].num_pieces = shape.blocks[3].num_pieces = 4;
        shape.gradient_slots = order == ComputeOrder::kLayerMajor ? 2 : 0;
        expect_sound_graphs(shape);
        shape.needed_share = 0.1;
        expect_sound_graphs(shape);
        shape.is_tied = true;
        expect_sound_graphs(shape);
      }
    }
  }
}

TEST(Validate, ALaneThatIsNotThereIsNamed) {
  TaskGraph graph = sound();
  graph.set_lanes(LaneKind::kD2h, 0);
  EXPECT_EQ(faults_of(graph).front().kind, FaultKind::kUnknownLane);
  EXPECT_THAT(faults_of(graph).front().text, HasSubstr("offload(block 1, step 0) is for lane d2h"));
  graph = sound();
  graph.tasks.back().lane = static_cast<LaneKind>(77);
  EXPECT_THAT(text_of_only(graph, FaultKind::kUnknownLane), HasSubstr("unknown"));
  graph = sound();
  graph.set_lanes(LaneKind::kCompute, 2);
  EXPECT_THAT(text_of_only(graph, FaultKind::kTooManyLanes), HasSubstr("2 lanes compute"));
}

TEST(Validate, EdgesToNowhereAndToItselfAreNamed) {
  TaskGraph graph = sound();
  graph.connect(0, 12345);
  EXPECT_THAT(text_of_only(graph, FaultKind::kUnknownTask), HasSubstr("12345"));
  graph = sound();
  graph.connect(-1, 0);
  text_of_only(graph, FaultKind::kUnknownTask);
  graph = sound();
  graph.connect(2, 2);
  EXPECT_EQ(text_of_only(graph, FaultKind::kSelfEdge), "forward(block 2, micro-batch 0, step 0) waits for itself.");
}

TEST(Validate, RepeatedTasksAndBadCostsAreNamed) {
  TaskGraph graph = sound();
  graph.tasks[1].block = 0;
  EXPECT_THAT(text_of_only(graph, FaultKind::kRepeatedTask), HasSubstr("forward(block 0, micro-batch 0, step 0)"));
  graph = repeat_step(exact_overlap_step(equal_blocks(1, false, 2)), 1);
  graph.tasks.back().piece = 0;
  EXPECT_THAT(text_of_only(graph, FaultKind::kRepeatedTask), HasSubstr("fetch(block 0, piece 0, step 0)"));
  for (const double cost : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    graph = sound();
    graph.tasks[1].cost_s = cost;
    text_of_only(graph, FaultKind::kBadCost);
  }
  graph = sound();
  graph.tasks[0].cost_s = graph.tasks[1].cost_s = 3e9;
  EXPECT_THAT(text_of_only(graph, FaultKind::kBadCost), HasSubstr("all tasks"));
}

TEST(Validate, ACycleIsNamedTaskByTask) {
  TaskGraph graph = sound();
  graph.connect(3, 1);  // forward of block 1 would wait for that of block 3
  const std::string text = text_of_only(graph, FaultKind::kCycle);
  for (const char* block : {"block 1", "block 2", "block 3"}) EXPECT_THAT(text, HasSubstr(block));
  EXPECT_THROW(require_valid(graph), InternalError);
}

TEST(Validate, ProgramOrderCanCloseACycle) {
  TaskGraph graph;
  graph.set_lanes(LaneKind::kCompute, 1);
  const int32_t first = graph.add({.kind = TaskKind::kForward, .block = 0});
  const int32_t second = graph.add({.kind = TaskKind::kForward, .block = 1});
  graph.connect(second, first);
  text_of_only(graph, FaultKind::kCycle);
}

// Turning round any edge within a step closes a cycle or, across steps, goes back in time.
TEST(Validate, EdgesPutInBothDirectionsAreRefused) {
  const TaskGraph graph = sound();
  for (const Edge& edge : graph.edges) {
    TaskGraph mutant = graph;
    mutant.connect(edge.to, edge.from);
    EXPECT_FALSE(faults_of(mutant).empty());
  }
}

}  // namespace
}  // namespace headrace::graph
