#include "headrace/plan/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace::plan {
namespace {

config::ModelShape shape() {
  config::ModelShape shape;
  shape.vocab_size = 1000;
  shape.hidden_size = 64;
  shape.num_layers = 4;
  shape.num_heads = 4;
  shape.num_kv_heads = 2;
  shape.head_dim = 16;
  shape.intermediate_size = 128;
  return shape;
}

TEST(MemoryPlan, TrainingStateIsSixteenBytesAParameter) {
  const MemoryPlan plan = plan_memory(shape(), {.parameters = 1000, .state_parameters = 1000, .tokens = 10});
  EXPECT_EQ(plan.weights + plan.gradients + plan.moments, 16000);
}

TEST(MemoryPlan, FrozenParametersHaveNoMoments) {
  const MemoryPlan plan = plan_memory(shape(), {.parameters = 1000, .state_parameters = 400, .tokens = 10});
  EXPECT_EQ(plan.moments, 3200);
}

TEST(MemoryPlan, RecomputationKeepsOneInputALayer) {
  const MemoryRequest request{.parameters = 1, .state_parameters = 1, .tokens = 100, .recompute = true};
  EXPECT_EQ(plan_memory(shape(), request).activations, 5 * 4 * 100 * 64);
}

// Five tensors of the scores of all heads, 256 MiB each at most unless one key head's are more.
TEST(MemoryPlan, AttentionThatHoldsItsScoresNeedsRoomForThem) {
  const auto workspace = [](int64_t scored_tokens) {
    return plan_memory(shape(), {.parameters = 1, .tokens = 10, .scored_tokens = scored_tokens}).workspace;
  };
  const int64_t without = workspace(0);
  EXPECT_EQ(workspace(100) - without, 5 * 4 * 4 * 100 * 100);
  EXPECT_EQ(workspace(5000) - without, 5 * (int64_t{256} << 20));
  EXPECT_EQ(workspace(10000) - without, int64_t{5} * 4 * 2 * 10000 * 10000);
}

TEST(MemoryPlan, RefusalNamesNeedHaveAndKnobs) {
  const MemoryPlan plan = plan_memory(shape(), {.parameters = 1 << 20, .state_parameters = 1 << 20, .tokens = 10});
  EXPECT_NO_THROW(require_fits(plan, plan.total(), "--host-budget"));
  try {
    require_fits(plan, 1 << 20, "--host-budget");
    FAIL() << "fits";
  } catch (const CapacityError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("--host-budget is 1.00 MiB. Lower --batch"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("moments 8.00 MiB"));
  }
}

}  // namespace
}  // namespace headrace::plan
