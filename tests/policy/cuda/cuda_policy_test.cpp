// Every policy on a GPU against the resident policy on the CPU, within rounding.
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "headrace/device/cuda.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/resident.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "tests/policy/relay.h"

namespace headrace::policy {
namespace {

using support::random_weights;

constexpr OptimizerSettings kOptimizer{.weight_decay = 0.1, .clip = 0.5};

class CudaPolicy : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "libtorch finds no usable GPU";
  }

  std::unique_ptr<Policy> resident(std::unique_ptr<device::Device> device = nullptr) {
    return std::make_unique<Resident>(model_, random_weights(model_, 1), Resident::Settings{kOptimizer},
                                      std::move(device));
  }

  // Losses and weights within rounding of the CPU's; saved and restored on the way the same bits.
  void expect_close_to_cpu(const MakePolicy& make) {
    const std::unique_ptr<Policy> cpu = resident();
    std::unique_ptr<Policy> gpu = make();
    const Relay relay{};
    for (int64_t i = 0; i < relay.steps; ++i) {
      const double expected = relay.step(*cpu, i).loss_sum;
      EXPECT_NEAR(relay.step(*gpu, i).loss_sum, expected, 1e-4 * expected) << "step " << i;
      if (i != relay.steps / 2) continue;
      PolicyState state;
      gpu->save(state);
      gpu = make();
      gpu->restore(state, {});
    }
    const std::vector<at::Tensor> expected = trained_weights(*cpu), found = trained_weights(*gpu);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::allclose(found[i].cpu(), expected[i], 1e-3, 1e-4)) << "block " << i;
    }
  }

  const model::Model model_ = support::tiny_model();
};

TEST_F(CudaPolicy, ResidentIsTheCpusWithinRounding) {
  expect_close_to_cpu([&] { return resident(device::cuda::make_device({})); });
}

TEST_F(CudaPolicy, OffloadIsTheCpusWithinRounding) {
  for (const int32_t device_blocks : {0, 2}) {
    expect_close_to_cpu([&] {
      return std::make_unique<Offload>(
          model_, device::cuda::make_device({}), random_weights(model_, 1),
          OffloadSettings{
              .optimizer = kOptimizer, .device_budget = int64_t{1} << 30, .num_device_blocks = device_blocks});
    });
  }
}

// With windows of one step and without overlap it is AdamW, whatever is important.
TEST_F(CudaPolicy, ZenFlowWithoutDeferralIsTheCpusWithinRounding) {
  ZenFlowSettings settings{.optimizer = kOptimizer};
  settings.topk_ratio = 0.2;
  settings.schedule = {.update_interval = 1, .warmup_steps = 1, .select_interval = 3, .overlaps = false};
  expect_close_to_cpu([&] {
    return std::make_unique<ZenFlow>(model_, device::cuda::make_device({}), random_weights(model_, 1), settings);
  });
}

}  // namespace
}  // namespace headrace::policy
