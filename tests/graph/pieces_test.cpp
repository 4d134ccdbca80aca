#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/no_overlap_step.h"
#include "headrace/graph/simulator.h"
#include "tests/graph/equal_blocks.h"

namespace headrace::graph {
namespace {

bool waits(const TaskGraph& graph, const std::string& later, const std::string& earlier) {
  return std::any_of(graph.edges.begin(), graph.edges.end(), [&](const Edge& edge) {
    return name_of(graph.tasks[static_cast<size_t>(edge.to)]) == later &&
           name_of(graph.tasks[static_cast<size_t>(edge.from)]) == earlier;
  });
}

// Bytes by kind of task of block 0.
std::map<TaskKind, int64_t> bytes_of_first(const StepGraph& step) {
  std::map<TaskKind, int64_t> bytes;
  for (const Task& task : step.graph.tasks) bytes[task.kind] += task.block == 0 ? task.bytes : 0;
  return bytes;
}

TEST(Pieces, ShareOutTheirBytesExactly) {
  StepShape shape = equal_blocks(2);
  shape.blocks[0] = {.weight_bytes = 1001, .gradient_bytes = 2003, .update_bytes = 6000000000007, .num_pieces = 7};
  for (const double needed : {0.0, 0.013, 0.999}) {
    shape.needed_share = needed;
    for (const StepGraph& step : {exact_overlap_step(shape), no_overlap_step(shape)}) {
      const auto bytes = bytes_of_first(step);
      EXPECT_EQ(bytes.at(TaskKind::kFetch), 1001);
      EXPECT_EQ(bytes.at(TaskKind::kOffload), 2003);
      EXPECT_EQ(bytes.at(TaskKind::kHostUpdate), 6000000000007);
    }
  }
  EXPECT_EQ(shape.piece_bytes(1, 0, 1000), 1000);
  shape.needed_share = 0.01;
  EXPECT_EQ(shape.piece_bytes(0, 0, 1000), 10);
  EXPECT_EQ(shape.piece_bytes(0, 1, 1000), 165);
}

TEST(Pieces, GoDownAreUpdatedAndGoUpOneByOne) {
  const TaskGraph graph = repeat_step(exact_overlap_step(equal_blocks(2, true, 3)), 2);
  for (const char* piece : {"piece 0", "piece 1", "piece 2"}) {
    const std::string of = "(block 1, " + std::string(piece) + ", step 0)";
    EXPECT_TRUE(waits(graph, "offload" + of, "backward(block 1, micro-batch 0, step 0)"));
    EXPECT_TRUE(waits(graph, "host_update" + of, "offload" + of));
    EXPECT_TRUE(waits(graph, "host_update" + of, "reduce(step 0)"));
    EXPECT_TRUE(waits(graph, "fetch" + of, "host_update" + of));
    EXPECT_TRUE(waits(graph, "forward(block 1, micro-batch 0, step 1)", "fetch" + of));
  }
}

TEST(Pieces, WithoutOverlapWorkersShareABlockAndCopiesStayWhole) {
  const TaskGraph graph = no_overlap_step(equal_blocks(2, false, 3)).graph;
  std::map<TaskKind, int> counts;
  for (const Task& task : graph.tasks) ++counts[task.kind];
  EXPECT_EQ(counts[TaskKind::kHostUpdate], 6);
  EXPECT_EQ(counts[TaskKind::kOffload], 2);
  EXPECT_EQ(counts[TaskKind::kFetch], 2);
}

TEST(GradientSlots, GoRoundInBackwardOrderAmongTheBlocksThatShare) {
  StepShape shape = equal_blocks(6);
  const auto slots = [&](int32_t on_device) {
    std::vector<int32_t> all;
    for (int32_t b = 0; b < 6; ++b) all.push_back(shape.gradient_slot(b, on_device));
    return all;
  };
  EXPECT_EQ(slots(0), std::vector<int32_t>(6, kOwnBuffer));
  shape.gradient_slots = 2;
  EXPECT_EQ(slots(0), (std::vector<int32_t>{1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(slots(2), (std::vector<int32_t>{kOwnBuffer, kOwnBuffer, 1, 0, 1, 0}));
  shape.is_tied = true;
  EXPECT_EQ(slots(0), (std::vector<int32_t>{kOwnBuffer, 0, 1, 0, 1, 0}));
  shape.gradient_slots = 10;
  EXPECT_EQ(slots(0), (std::vector<int32_t>{kOwnBuffer, 4, 3, 2, 1, 0}));
}

TEST(GradientSlots, ABackwardWaitsForEveryPieceThatLeavesItsSlot) {
  StepShape shape = equal_blocks(5, true, 2);
  shape.is_tied = true;
  shape.gradient_slots = 2;
  shape.accumulate = 2;
  shape.order = ComputeOrder::kLayerMajor;
  const TaskGraph graph = exact_overlap_step(shape).graph;
  const auto backward = [](int b, int m) {
    return "backward(block " + std::to_string(b) + ", micro-batch " + std::to_string(m) + ", step 0)";
  };
  for (int b = 0; b < 5; ++b) {
    for (int user = 0; user < 5; ++user) {
      for (const char* piece : {"piece 0", "piece 1"}) {
        const std::string offload = "offload(block " + std::to_string(user) + ", " + piece + ", step 0)";
        EXPECT_EQ(waits(graph, backward(b, 0), offload), b > 0 && user == b + 2) << b << " after " << user;
        EXPECT_FALSE(waits(graph, backward(b, 1), offload));
      }
    }
  }
}

// The link takes as long as backward. In deadline order the oldest gradient, whose slot is wanted, would go last.
TEST(GradientSlots, HoldUpBackwardByLittleWhenTheLinkKeepsPace) {
  StepShape shape = equal_blocks(40);
  CostTable table = ideal_table(shape, {1, 2, 0});
  table.of(LaneKind::kD2h).seconds_per_byte = 1.95 / 40000;
  std::vector<double> steps;
  for (const int32_t slots : {0, 1, 2, 3}) {
    shape.gradient_slots = slots;
    TaskGraph graph = repeat_step(exact_overlap_step(shape), 6);
    assign_costs(graph, table);
    steps.push_back(steady_step_s(graph, simulate(graph)));
  }
  EXPECT_GT(steps[1], 4.5);                // each backward waits for a whole copy
  EXPECT_NEAR(steps[2], steps[0], 0.051);  // at most one copy more
  EXPECT_NEAR(steps[3], steps[0], 0.051);
}

// Block 0, the embedding, holds 21 % of the parameters and takes no time to compute; 30 layers; then the head.
struct EmbeddingModel {
  static constexpr double kShare = 0.21;
  static constexpr double kNeeded = 0.02;                  // of block 0
  static constexpr double kLate = kShare * (1 - kNeeded);  // of the model
  StepShape shape;

  EmbeddingModel(bool is_tied, bool clip) {
    shape.blocks.assign(32, {.update_bytes = 790000 / 30, .num_pieces = 4});
    shape.blocks.front() = {.update_bytes = 210000, .num_pieces = 32};
    shape.blocks.back() = {.update_bytes = 10};
    shape.is_tied = is_tied;
    shape.clip = clip;
  }

  // Ideal links; the stall [s] of a step.
  double stall_s(const StepCosts& costs) const {
    CostTable table;
    table.of(LaneKind::kHostUpdate).seconds_per_byte = costs.host_update_s / 1e6;
    table.blocks.assign(32, {.forward_s = costs.forward_s / 31, .backward_s = costs.backward_s / 31});
    table.blocks.front() = {};
    TaskGraph graph = repeat_step(exact_overlap_step(shape), 12);
    assign_costs(graph, table);
    return steady_step_s(graph, simulate(graph)) - costs.forward_s - costs.backward_s;
  }
};

// Its gradient is the last to be complete, so without this all of its update is a bubble before the next forward.
TEST(NeededRows, TakeTheBubbleOfABigEmbeddingAway) {
  struct Case {
    bool clip;
    StepCosts costs;
  };
  for (const Case& at : {Case{false, {1, 2, 1.5}}, Case{false, {1, 2, 2.4}}, Case{true, {1, 2, 0.75}}}) {
    for (const bool is_tied : {true, false}) {
      EmbeddingModel model(is_tied, at.clip);
      SCOPED_TRACE(testing::Message() << "clip " << at.clip << " C " << at.costs.host_update_s << " tied " << is_tied);
      const double update_s = at.costs.host_update_s;
      const double bound = (update_s + at.costs.forward_s) / 31;
      const double before_s = model.stall_s(at.costs);
      EXPECT_NEAR(before_s, EmbeddingModel::kShare * update_s, bound);
      model.shape.needed_share = EmbeddingModel::kNeeded;
      EXPECT_NEAR(before_s - model.stall_s(at.costs), EmbeddingModel::kLate * update_s, 1e-5);
    }
  }
}

// Where the host is the bottleneck the closed forms hold. Late rows of an untied embedding need not be there when
// backward begins, so that with clipping they cost the host as little time as if they were updated on the device.
TEST(NeededRows, ReachTheClosedFormWhereTheHostIsTheBottleneck) {
  for (const bool is_tied : {true, false}) {
    for (const double update_s : {1.5, 6.0}) {
      const StepCosts costs{1, 2, update_s};
      const double bound = (update_s + costs.forward_s) / 31;
      EmbeddingModel free(is_tied, false), clipped(is_tied, true);
      free.shape.needed_share = clipped.shape.needed_share = EmbeddingModel::kNeeded;
      EXPECT_NEAR(free.stall_s(costs), stall_in_deadline_order(costs), bound);
      const double late = is_tied ? 0 : EmbeddingModel::kLate;
      EXPECT_NEAR(clipped.stall_s(costs), stall_with_global_clip(costs, late), bound);
    }
  }
}

TEST(NeededRows, ATiedEmbeddingsOtherPiecesAreWaitedForByTheHead) {
  StepShape shape = equal_blocks(3, true, 2);
  shape.needed_share = 0.1;
  shape.is_tied = true;
  const TaskGraph graph = repeat_step(exact_overlap_step(shape), 2);
  const auto forward = [](int b) { return "forward(block " + std::to_string(b) + ", micro-batch 0, step 1)"; };
  EXPECT_TRUE(waits(graph, forward(0), "fetch(block 0, piece 0, step 0)"));
  EXPECT_FALSE(waits(graph, forward(0), "fetch(block 0, piece 1, step 0)"));
  EXPECT_TRUE(waits(graph, forward(2), "fetch(block 0, piece 1, step 0)"));
  EXPECT_TRUE(waits(graph, forward(1), "fetch(block 1, piece 1, step 0)"));
}

TEST(NeededRows, AnUntiedEmbeddingsOtherPiecesEndBeforeItsNextGradientGoesDown) {
  StepShape shape = equal_blocks(3, true, 2);
  shape.needed_share = 0.1;
  const TaskGraph graph = repeat_step(exact_overlap_step(shape), 2);
  for (int b = 0; b < 3; ++b) {
    const std::string forward = "forward(block " + std::to_string(b) + ", micro-batch 0, step 1)";
    EXPECT_FALSE(waits(graph, forward, "fetch(block 0, piece 1, step 0)"));
  }
  EXPECT_TRUE(waits(graph, "backward(block 0, micro-batch 0, step 1)", "offload(block 0, piece 1, step 0)"));
  EXPECT_TRUE(waits(graph, "reduce(step 1)", "host_update(block 0, piece 1, step 0)"));
  for (const char* piece : {"piece 0", "piece 1"}) {
    EXPECT_TRUE(
        waits(graph, "offload(block 0, " + std::string(piece) + ", step 1)", "fetch(block 0, piece 1, step 0)"));
  }
}

}  // namespace
}  // namespace headrace::graph
