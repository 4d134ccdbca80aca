#include "headrace/plan/offload.h"

#include <gtest/gtest.h>

#include <string>

#include "headrace/base/errors.h"

namespace headrace::plan {
namespace {

constexpr const char* kConfig = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 100, "hidden_size": 8,
  "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true})";

class PlanOffloadTest : public ::testing::Test {
 protected:
  OffloadRequest request_{.block_parameters = {800, 600, 600, 8},
                          .block_state_parameters = {800, 600, 0, 8},
                          .tokens = 10,
                          .trained_tokens = 10};
  const config::ModelShape shape_ = config::ModelShape::parse(kConfig, "test");
};

TEST_F(PlanOffloadTest, AddsUpByTier) {
  const OffloadPlan plan = plan_offload(shape_, request_, 0, graph::ComputeOrder::kMicroBatchMajor);
  EXPECT_EQ(plan.device.weights, 4 * 2008);
  EXPECT_EQ(plan.device.gradients, 4 * 2008);
  EXPECT_EQ(plan.device.moments, 0);
  EXPECT_EQ(plan.host.weights, 4 * 2008);
  EXPECT_EQ(plan.host.gradients, 4 * 2008);
  EXPECT_EQ(plan.host.moments, 8 * 1408);
}

TEST_F(PlanOffloadTest, SharedBuffersAreAsLongAsTheirLargestBlock) {
  // Backward order: the head's norm (8) and layer 0 (600) in slot 0, layer 1 (600) in slot 1; the tied embedding alone.
  EXPECT_EQ(plan_offload(shape_, request_, 2, graph::ComputeOrder::kMicroBatchMajor).device.gradients,
            4 * (800 + 600 + 600));
  EXPECT_EQ(plan_offload(shape_, request_, 1, graph::ComputeOrder::kMicroBatchMajor).device.gradients, 4 * (800 + 600));
}

TEST_F(PlanOffloadTest, DeviceBlocksLeaveTheHost) {
  request_.device_blocks = 2;
  const OffloadPlan plan = plan_offload(shape_, request_, 1, graph::ComputeOrder::kMicroBatchMajor);
  EXPECT_EQ(plan.device.moments, 8 * 1400);
  EXPECT_EQ(plan.device.gradients, 4 * (800 + 600 + 600));  // those of device blocks wait for the norm in their own
  EXPECT_EQ(plan.host.weights, 4 * 608);
  EXPECT_EQ(plan.host.moments, 8 * 8);
}

TEST_F(PlanOffloadTest, ChoosesTheMostThatFits) {
  const auto of = [&](int32_t slots) {
    return plan_offload(shape_, request_, slots, graph::ComputeOrder::kMicroBatchMajor).device.total();
  };
  EXPECT_EQ(choose_offload(shape_, request_, 0).gradient_slots, 0);
  EXPECT_EQ(choose_offload(shape_, request_, of(0)).gradient_slots, 0);
  EXPECT_EQ(choose_offload(shape_, request_, of(2)).gradient_slots, 2);
  EXPECT_EQ(choose_offload(shape_, request_, of(1)).gradient_slots, 1);
}

TEST_F(PlanOffloadTest, SeveralMicroBatchesShareBuffersLayerByLayer) {
  request_.accumulate = 3;
  const int64_t own = plan_offload(shape_, request_, 0, graph::ComputeOrder::kMicroBatchMajor).device.total();
  EXPECT_EQ(choose_offload(shape_, request_, own).order, graph::ComputeOrder::kMicroBatchMajor);
  const OffloadPlan layers = plan_offload(shape_, request_, 1, graph::ComputeOrder::kLayerMajor);
  const OffloadPlan one = plan_offload(shape_, request_, 1, graph::ComputeOrder::kMicroBatchMajor);
  EXPECT_EQ(layers.device.activations, 3 * one.device.activations);
}

TEST_F(PlanOffloadTest, TheRefusalNamesTheSmallestBudgetThatWorks) {
  const int64_t need = plan_offload(shape_, request_, 1, graph::ComputeOrder::kMicroBatchMajor).device.total();
  EXPECT_EQ(choose_offload(shape_, request_, need).device.total(), need);
  try {
    choose_offload(shape_, request_, need - 1);
    FAIL() << "one byte less was enough";
  } catch (const CapacityError& error) {
    EXPECT_NE(std::string(error.what()).find("--device-budget"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("--recompute"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headrace::plan
