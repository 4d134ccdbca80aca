#include "headrace/plan/zenflow.h"

#include <gtest/gtest.h>

#include <string>

#include "headrace/base/errors.h"
#include "headrace/plan/policy_choice.h"

namespace headrace::plan {
namespace {

constexpr const char* kConfig = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 100, "hidden_size": 8,
  "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true})";

class PlanZenflowTest : public ::testing::Test {
 protected:
  ZenflowRequest request_{.block_parameters = {800, 600, 600, 8},
                          .important = 200,
                          .deferred = 1808,
                          .ring_buffer = 50,
                          .exchange = 100,
                          .longest_interval = 4,
                          .accumulate = 2,
                          .tokens = 10,
                          .trained_tokens = 10};
  const config::ModelShape shape_ = config::ModelShape::parse(kConfig, "test");
};

TEST_F(PlanZenflowTest, AddsUpByTier) {
  const ZenflowPlan slots = plan_zenflow(shape_, request_, false, true);
  EXPECT_EQ(slots.device.weights, 4 * 2008);
  EXPECT_EQ(slots.device.gradients, 4 * (2008 + 200));
  EXPECT_EQ(slots.device.moments, 8 * 200);
  EXPECT_EQ(slots.host.weights, 4 * 1808);
  EXPECT_EQ(slots.host.moments, 8 * 1808);
  EXPECT_EQ(slots.host.gradients, 4 * 1808 * 8);  // two windows of four steps
  EXPECT_EQ(slots.host.workspace, 24 * 100);
  const ZenflowPlan sums = plan_zenflow(shape_, request_, true, false);
  EXPECT_EQ(sums.host.gradients, 4 * 1808 * 3);  // two sums, and where gradients arrive
  EXPECT_EQ(sums.device.gradients, 4 * (800 + 600 + 200));
  EXPECT_EQ(sums.order, graph::ComputeOrder::kLayerMajor);
}

TEST_F(PlanZenflowTest, ChoosesTheMostThatFits) {
  const auto host = [&](bool has_slots) { return plan_zenflow(shape_, request_, false, has_slots).host.total(); };
  const auto device = [&](bool shares) { return plan_zenflow(shape_, request_, shares, true).device.total(); };
  EXPECT_TRUE(choose_zenflow(shape_, request_, 0, 0).has_slots);
  EXPECT_TRUE(choose_zenflow(shape_, request_, device(false), host(true)).has_slots);
  EXPECT_FALSE(choose_zenflow(shape_, request_, 0, host(true) - 1).has_slots);
  request_.accumulate = 1;
  EXPECT_FALSE(choose_zenflow(shape_, request_, device(false), 0).shares_gradient);
  EXPECT_TRUE(choose_zenflow(shape_, request_, device(false) - 1, 0).shares_gradient);
}

TEST_F(PlanZenflowTest, RefusesWithNeedHaveAndKnob) {
  const auto refusal = [&](int64_t device, int64_t host) -> std::string {
    try {
      choose_zenflow(shape_, request_, device, host);
    } catch (const CapacityError& error) {
      return error.what();
    }
    return "none";
  };
  request_.accumulate = 1;
  const int64_t need = plan_zenflow(shape_, request_, true, true).device.total();
  EXPECT_EQ(refusal(need, 0), "none");
  EXPECT_NE(refusal(need - 1, 0).find(std::to_string(need)), std::string::npos) << refusal(need - 1, 0);
  EXPECT_NE(refusal(need - 1, 0).find("--device-budget"), std::string::npos);
  EXPECT_NE(refusal(0, 100).find("--host-budget"), std::string::npos);
}

// The figures of docs/zenflow.md: fp32, k = 0.1. With slots a host that needs four steps for an exact update follows
// from S = 7 on; a running sum never lets it follow beyond 2.6 step times.
TEST(HostFloorTest, SlotsReachWhereARunningSumCannot) {
  EXPECT_EQ(shortest_interval({.exact_update_s = 4, .step_s = 1}, 100), 7);
  EXPECT_EQ(shortest_interval({.exact_update_s = 7.7, .step_s = 1}, 1000), 594);
  EXPECT_EQ(shortest_interval({.exact_update_s = 7.8, .step_s = 1}, 100000), 0);
  EXPECT_EQ(shortest_interval({.exact_update_s = 4, .step_s = 1, .has_slots = false}, 100000), 0);
  EXPECT_GT(shortest_interval({.exact_update_s = 2.5, .step_s = 1, .has_slots = false}, 1000), 0);
  EXPECT_EQ(shortest_interval({.exact_update_s = 1.1, .step_s = 1}, 8), 1);
}

ChoiceRequest with_host(double host_update_s) {
  return {.forward_s = 0.3, .backward_s = 0.7, .host_update_s = host_update_s};
}

TEST(ChoosePolicyTest, ExactWhileItHardlyStalls) {
  EXPECT_EQ(choose_policy(with_host(0.3)).policy, ChosenPolicy::kExact);
  ChoiceRequest unclipped = with_host(1.0);
  unclipped.clips = false;
  EXPECT_EQ(choose_policy(unclipped).policy, ChosenPolicy::kExact);
}

TEST(ChoosePolicyTest, SpareDeviceMemoryComesBeforeDeferral) {
  ChoiceRequest request = with_host(0.6);
  request.device_share = 0.6;
  const PolicyChoice choice = choose_policy(request);
  EXPECT_EQ(choice.policy, ChosenPolicy::kExactWithShare);
  EXPECT_DOUBLE_EQ(choice.device_share, 0.5);
  EXPECT_LT(choice.stall_share, kSmallStall);
}

TEST(ChoosePolicyTest, ElseTheShortestWindowsThatTheHostFollows) {
  const PolicyChoice choice = choose_policy(with_host(2));
  EXPECT_EQ(choice.policy, ChosenPolicy::kZenFlow);
  EXPECT_EQ(choice.update_interval, 3);
  EXPECT_EQ(choice.stall_share, 0);
  EXPECT_EQ(choose_policy(with_host(0.5)).update_interval, 1);
}

// Beyond every window the device's memory helps as far as it goes, and what is left is said.
TEST(ChoosePolicyTest, BeyondTheFloorTheRestIsSaid) {
  PolicyChoice choice = choose_policy(with_host(8));
  EXPECT_EQ(choice.update_interval, 8);
  EXPECT_GT(choice.stall_share, 0.2);
  ChoiceRequest roomy = with_host(8);
  roomy.device_share = 0.7;
  choice = choose_policy(roomy);
  EXPECT_GT(choice.device_share, 0.3);
  EXPECT_LT(choice.stall_share, 1e-9);
  for (const std::string& reason : choice.reasons) EXPECT_FALSE(reason.empty());
}

}  // namespace
}  // namespace headrace::plan
