#include "headrace/optim/adamw.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/optim.h>
#include <torch/types.h>

#include "headrace/optim/gpu_adamw.h"
#include "tests/support/fake_gpu.h"

namespace headrace::optim {
namespace {

// Against torch::optim::AdamW in the same process, with two groups, decay and a changing gradient.
TEST(AdamWStep, FollowsLibtorch) {
  torch::manual_seed(1);
  const ParameterRange ranges[] = {{0, 4000, true, false}, {4000, 96, false, false}};
  const ParameterGroups groups = group_parameters(ranges);
  at::Tensor weights = torch::randn({4096});
  AdamWState state = make_adamw_state(groups);
  torch::Tensor matrix = weights.slice(0, 0, 4000).clone().requires_grad_(true);
  torch::Tensor norm = weights.slice(0, 4000).clone().requires_grad_(true);
  torch::optim::AdamW reference(
      {torch::optim::OptimizerParamGroup(
           {matrix}, std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(1e-2).weight_decay(0.1))),
       torch::optim::OptimizerParamGroup(
           {norm}, std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(1e-2).weight_decay(0)))},
      torch::optim::AdamWOptions(1e-2));
  for (int step = 0; step < 20; ++step) {
    const at::Tensor gradient = torch::randn({4096}) * (step < 10 ? 1 : 0.1);
    matrix.mutable_grad() = gradient.slice(0, 0, 4000).clone();
    norm.mutable_grad() = gradient.slice(0, 4000).clone();
    reference.step();
    adamw_step(groups, weights, gradient, state, {.learning_rate = 1e-2, .weight_decay = 0.1});
  }
  EXPECT_EQ(state.updates, 20);
  // Twenty steps of 1e-2 in fp32, sums in another order: a few ulp of 1.
  EXPECT_LT((weights - torch::cat({matrix.detach(), norm.detach()})).abs().max().item<float>(), 2e-6f);
}

// Cases "chunks" (1 and 2 threads) and "write-back": two parameters of 1 Mi, value 1, gradient 1, lr .01, 2 steps.
TEST(AdamWStep, ThreadsDoNotChangeOneBit) {
  const ParameterRange ranges[] = {{0, 1 << 20, true, false}, {1 << 20, 1 << 20, false, false}};
  const ParameterGroups groups = group_parameters(ranges);
  std::vector<at::Tensor> results;
  for (int threads : {1, 2}) {
    at::set_num_threads(threads);
    at::Tensor weights = torch::ones({2 << 20});
    AdamWState state = make_adamw_state(groups);
    for (int step = 0; step < 2; ++step) {
      adamw_step(groups, weights, torch::ones({2 << 20}), state, {.learning_rate = 0.01});
    }
    results.push_back(weights);
  }
  EXPECT_TRUE(torch::equal(results[0], results[1]));
  EXPECT_TRUE(torch::equal(results[0], torch::full({2 << 20}, results[0][0].item<float>())));
  EXPECT_NEAR(results[0][0].item<float>(), 0.98f, 1e-6);
}

// Case "frozen": accepted, unchanged, no state, and not part of the norm.
TEST(AdamWStep, FrozenStaysAndDoesNotCount) {
  const ParameterRange ranges[] = {{0, 16, true, false}, {16, 16, true, true}, {32, 16, true, false}};
  const ParameterGroups groups = group_parameters(ranges);
  at::Tensor weights = torch::ones({48});
  const at::Tensor gradient = torch::ones({48});
  AdamWState state = make_adamw_state(groups);
  EXPECT_EQ(state.m.numel(), 32);
  adamw_step(groups, weights, gradient, state, {.learning_rate = 0.1});
  EXPECT_TRUE(torch::equal(weights.slice(0, 16, 32), torch::ones({16})));
  EXPECT_NEAR(weights[0].item<float>(), 0.9f, 1e-6);
  EXPECT_NEAR(weights[47].item<float>(), 0.9f, 1e-6);
  EXPECT_EQ(squared_norm(groups, gradient), 32.0);
}

// Case "accumulated norm": micro-gradients [3,0] and [0,4] have a global norm of 5.
TEST(SquaredNorm, IsOfTheSumOfMicroBatches) {
  const ParameterRange ranges[] = {{0, 2, true, false}};
  at::Tensor gradient = torch::zeros({2});
  gradient += torch::tensor({3.0f, 0.0f});
  gradient += torch::tensor({0.0f, 4.0f});
  EXPECT_EQ(squared_norm(group_parameters(ranges), gradient), 25.0);
}

TEST(SquaredNorm, ThreadsDoNotChangeOneBit) {
  torch::manual_seed(2);
  const at::Tensor gradient = torch::randn({1'000'003});
  const ParameterRange ranges[] = {{0, 500'000, true, false}, {500'000, 500'003, false, false}};
  const ParameterGroups groups = group_parameters(ranges);
  at::set_num_threads(1);
  const double one = squared_norm(groups, gradient);
  at::set_num_threads(2);
  EXPECT_EQ(one, squared_norm(groups, gradient));
  EXPECT_NEAR(one / gradient.to(at::kDouble).square().sum().item<double>(), 1, 1e-9);
}

// The kernels for GPUs, run on the host; groups that are not aligned to anything, frozen elements between them.
TEST(GpuAdamW, IsTheHostsBitForBit) {
  if (const std::string why = support::why_no_fake_gpu(); !why.empty()) GTEST_SKIP() << why;
  torch::manual_seed(2);
  const ParameterRange ranges[] = {{0, 1001, true, false}, {1001, 30, true, true}, {1031, 5001, false, false}};
  const ParameterGroups groups = group_parameters(ranges);
  at::Tensor weights = torch::randn({6032}), on_gpu = weights.clone();
  AdamWState state = make_adamw_state(groups), of_gpu = make_adamw_state(groups);
  for (int step = 0; step < 3; ++step) {
    const at::Tensor gradient = torch::randn({6032});
    const kernel::AdamWStep update{.learning_rate = 1e-2, .weight_decay = 0.1, .gradient_scale = 0.7F};
    adamw_step(groups, weights, gradient, state, update);
    gpu_adamw_step(groups, on_gpu, gradient, of_gpu, update);
  }
  EXPECT_TRUE(torch::equal(on_gpu, weights));
  EXPECT_TRUE(torch::equal(of_gpu.m, state.m) && torch::equal(of_gpu.v, state.v));
  EXPECT_EQ(of_gpu.updates, 3);
}

TEST(GpuAdamW, NormIsTheHostsWithinRoundingAndSeesWhatIsNotFinite) {
  torch::manual_seed(3);
  const ParameterRange ranges[] = {{0, 9000, true, false}, {9000, 10, true, true}, {9010, 7, false, false}};
  const ParameterGroups groups = group_parameters(ranges);
  at::Tensor gradient = torch::randn({9017});
  const double expected = squared_norm(groups, gradient);
  EXPECT_NEAR(gpu_squared_norm(groups, gradient), expected, 1e-6 * expected);
  gradient[9005] = std::numeric_limits<float>::quiet_NaN();  // frozen
  EXPECT_NEAR(gpu_squared_norm(groups, gradient), expected, 1e-6 * expected);
  gradient[9012] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(gpu_squared_norm(groups, gradient)));
}

}  // namespace
}  // namespace headrace::optim
