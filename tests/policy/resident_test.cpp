#include "headrace/policy/resident.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "headrace/base/errors.h"
#include "tests/support/tiny_model.h"

namespace headrace::policy {
namespace {

using support::random_batch;
using support::random_weights;

constexpr OptimizerSettings kOptimizer{.weight_decay = 0.1, .clip = 1};

std::vector<at::Tensor> clones(std::span<const model::BlockBuffers> blocks) {
  std::vector<at::Tensor> result;
  for (const model::BlockBuffers& block : blocks) result.push_back(block.weights.clone());
  return result;
}

bool all_equal(std::span<const model::BlockBuffers> blocks, const std::vector<at::Tensor>& weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!at::equal(blocks[i].weights, weights[i])) return false;
  }
  return true;
}

class ResidentTest : public ::testing::Test {
 protected:
  ResidentTest() { at::set_num_threads(2); }
  Resident make(Resident::Settings settings = {kOptimizer}) { return {model_, random_weights(model_, 1), settings}; }

  const model::Model model_ = support::tiny_model();
  const std::vector<model::Batch> batches_{random_batch({7, 12}, 1), random_batch({5}, 2)};
};

TEST_F(ResidentTest, LossFallsOnARepeatedBatch) {
  Resident policy = make();
  const double first = policy.step({0, batches_, 1e-2}).loss();
  double last = first;
  for (int64_t step = 1; step < 30; ++step) last = policy.step({step, batches_, 1e-2}).loss();
  EXPECT_NEAR(first, std::log(67.0), 0.3);  // random weights know nothing of 67 tokens
  EXPECT_LT(last, 0.5 * first);
}

TEST_F(ResidentTest, SameInputsGiveTheSameBits) {
  Resident a = make(), b = make();
  for (int64_t step = 0; step < 3; ++step) {
    a.step({step, batches_, 1e-2});
    b.step({step, batches_, 1e-2});
  }
  EXPECT_TRUE(all_equal(a.blocks(), clones(b.blocks())));
}

TEST_F(ResidentTest, RecomputationChangesNoBit) {
  Resident kept = make(), recomputed = make({kOptimizer, true});
  for (int64_t step = 0; step < 3; ++step) {
    const StepResult a = kept.step({step, batches_, 1e-2}), b = recomputed.step({step, batches_, 1e-2});
    EXPECT_EQ(a.loss_sum, b.loss_sum);
    EXPECT_EQ(a.gradient_norm, b.gradient_norm);
  }
  EXPECT_TRUE(all_equal(kept.blocks(), clones(recomputed.blocks())));
}

// Case "token weights": one micro-batch of three documents or three of one are the same step but for rounding.
TEST_F(ResidentTest, SplittingTheBatchChangesOnlyRounding) {
  const std::vector<model::Batch> parts{random_batch({9}, 4), random_batch({4}, 5), random_batch({14}, 6)};
  model::Batch whole;
  std::vector<at::Tensor> ids, positions, targets;
  whole.document_starts = {0};
  for (const model::Batch& part : parts) {
    ids.push_back(part.ids_N);
    positions.push_back(part.positions_N);
    targets.push_back(part.targets_N);
    whole.document_starts.push_back(whole.document_starts.back() + part.num_tokens());
  }
  whole.ids_N = at::cat(ids);
  whole.positions_N = at::cat(positions);
  whole.targets_N = at::cat(targets);
  Resident one = make(), three = make();
  const StepResult a = one.step({0, {&whole, 1}, 1e-3}), b = three.step({0, parts, 1e-3});
  EXPECT_EQ(a.trained_tokens, b.trained_tokens);
  EXPECT_NEAR(a.loss(), b.loss(), 1e-6 * a.loss());
  EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-5 * a.gradient_norm);
  for (size_t i = 0; i < one.blocks().size(); ++i) {
    const at::Tensor &x = one.blocks()[i].gradients, &y = three.blocks()[i].gradients;
    EXPECT_LT((x - y).norm().item<double>(), 1e-5 * x.norm().item<double>()) << model_.blocks()[i].name;
  }
}

// Case "accumulate": four micro-batches add up to their mean, not to the last or the first of them.
TEST_F(ResidentTest, FourMicroBatchesGiveTheMeanOfTheirGradients) {
  std::vector<model::Batch> parts;
  for (uint64_t seed = 20; seed < 24; ++seed) {
    parts.push_back(random_batch({8}, seed));
    parts.back().targets_N.copy_(parts.back().ids_N);  // every part trains as many tokens as the others
  }
  std::vector<at::Tensor> mean;
  for (const model::Batch& part : parts) {
    Resident one = make();
    one.step({0, {&part, 1}, 1e-3});
    for (size_t i = 0; i < one.blocks().size(); ++i) {
      if (mean.size() <= i) mean.push_back(at::zeros_like(one.blocks()[i].gradients));
      mean[i] += one.blocks()[i].gradients / 4;
    }
  }
  Resident four = make();
  four.step({0, parts, 1e-3});
  for (size_t i = 0; i < mean.size(); ++i) {
    const double error = (four.blocks()[i].gradients - mean[i]).norm().item<double>();
    EXPECT_LT(error, 1e-5 * mean[i].norm().item<double>()) << model_.blocks()[i].name;
  }
}

TEST_F(ResidentTest, ClippingScalesTheWholeGradient) {
  Resident policy = make({{.clip = 0.01}});
  const StepResult result = policy.step({0, batches_, 1e-3});
  EXPECT_GT(result.gradient_norm, 0.01);
  EXPECT_NEAR(result.clip_factor, 0.01 / (result.gradient_norm + 1e-6), 1e-6);
}

// Case "coverage": after step 1 every parameter that is to be trained has moved, norms included.
TEST_F(ResidentTest, EveryParameterMoves) {
  Resident policy = make();
  const std::vector<at::Tensor> before = clones(policy.blocks());
  policy.step({0, batches_, 1e-2});
  size_t parameters = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    for (const model::ParameterSpec& parameter : model_.blocks()[i].parameters) {
      const auto part = [&](const at::Tensor& flat) {
        return flat.slice(0, parameter.offset, parameter.offset + parameter.numel);
      };
      EXPECT_FALSE(at::equal(part(before[i]), part(policy.blocks()[i].weights))) << parameter.name;
      ++parameters;
    }
  }
  EXPECT_EQ(policy.trained_parameters().size(), parameters);
  EXPECT_THAT(policy.trained_parameters(), ::testing::Contains("model.norm.weight"));
}

// Case "frozen": accepted, unchanged, no state.
TEST_F(ResidentTest, FrozenParametersStay) {
  Resident policy =
      make({kOptimizer, false, [](std::string_view name) { return name == "model.embed_tokens.weight"; }});
  const std::vector<at::Tensor> before = clones(policy.blocks());
  policy.step({0, batches_, 1e-2});
  EXPECT_TRUE(at::equal(policy.blocks()[0].weights, before[0]));
  EXPECT_FALSE(at::equal(policy.blocks()[1].weights, before[1]));
  EXPECT_LT(policy.state_numel(), make().state_numel() - 67 * 32 + 1);
  EXPECT_THAT(policy.trained_parameters(), ::testing::Not(::testing::Contains("model.embed_tokens.weight")));
}

// Case "masks": a step with nothing to learn updates nothing and gives no NaN.
TEST_F(ResidentTest, AllMaskedUpdatesNothing) {
  Resident policy = make();
  const std::vector<at::Tensor> before = clones(policy.blocks());
  model::Batch masked = random_batch({6, 3}, 9);
  masked.targets_N.fill_(model::kMasked);
  const StepResult result = policy.step({0, {&masked, 1}, 1e-2});
  EXPECT_EQ(result.trained_tokens, 0);
  EXPECT_EQ(result.loss(), 0);
  EXPECT_TRUE(all_equal(policy.blocks(), before));
}

TEST_F(ResidentTest, NonFiniteStopsNamingStepBlockAndTensor) {
  Resident policy = make();
  policy.step({0, batches_, 1e-2});
  const model::ParameterSpec* up = model_.blocks()[2].find(model::Role::kUp);
  ASSERT_NE(up, nullptr);
  policy.blocks()[2].weights[up->offset + 5] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor before = policy.blocks()[1].weights.clone();
  try {
    policy.step({1, batches_, 1e-2});
    FAIL() << "went on";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("step 2: "));
    EXPECT_THAT(error.what(), ::testing::HasSubstr(model_.blocks()[2].name + ", weight " + up->name + ", element 5"));
  }
  EXPECT_TRUE(at::equal(policy.blocks()[1].weights, before));
}

TEST_F(ResidentTest, AnOverflowingOutputIsNamed) {
  std::vector<at::Tensor> weights = random_weights(model_, 1);
  for (const model::Role role : {model::Role::kGate, model::Role::kUp}) {
    const model::ParameterSpec* matrix = model_.blocks()[1].find(role);
    weights[1].slice(0, matrix->offset, matrix->offset + matrix->numel).mul_(1e30f);  // their product overflows
  }
  Resident policy(model_, weights, {kOptimizer});
  try {
    policy.step({0, batches_, 1e-2});
    FAIL() << "went on";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("block " + model_.blocks()[1].name + ", output"));
  }
}

}  // namespace
}  // namespace headrace::policy
