// Policies on a device with memory of its own and the kernels for GPUs, as far as that can be tried without one: bit
// for bit what they compute on the emulated device, saved and restored after every step.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "headrace/device/emulated.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/resident.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "tests/policy/relay.h"
#include "tests/support/fake_gpu.h"

namespace headrace::policy {
namespace {

using support::FakeGpu;
using support::random_weights;

constexpr OptimizerSettings kOptimizer{.weight_decay = 0.1, .clip = 0.5};

class FakeGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    if (const std::string why = support::why_no_fake_gpu(); !why.empty()) GTEST_SKIP() << why;
  }

  std::unique_ptr<device::Device> make_device(bool is_gpu) const {
    if (is_gpu) return std::make_unique<FakeGpu>();
    return device::make_emulated_device({});
  }

  template <class Made, class Settings>
  void expect_same_as_emulated(const Settings& settings, const Relay& relay = {}) {
    const auto make = [&](bool is_gpu, uint64_t seed) {
      return std::make_unique<Made>(model_, make_device(is_gpu), random_weights(model_, seed), settings);
    };
    expect_relay([&] { return make(false, 1); }, [&](int64_t i) { return make(true, i == 0 ? 1 : 7); }, relay);
  }

  model::Model model_ = support::tiny_model();
};

TEST_F(FakeGpuTest, ResidentGoesOnBitForBit) {
  const auto make = [&](bool is_gpu, uint64_t seed) {
    return std::make_unique<Resident>(model_, random_weights(model_, seed), Resident::Settings{kOptimizer},
                                      make_device(is_gpu));
  };
  expect_relay([&] { return make(false, 1); }, [&](int64_t i) { return make(true, i == 0 ? 1 : 7); }, {});
}

TEST_F(FakeGpuTest, OffloadGoesOnBitForBit) {
  for (const int32_t device_blocks : {0, 2}) {
    expect_same_as_emulated<Offload>(OffloadSettings{.optimizer = kOptimizer, .num_device_blocks = device_blocks},
                                     {.micro_batches = 2});
  }
}

TEST_F(FakeGpuTest, ZenFlowGoesOnBitForBit) {
  for (const char* config : {support::kTinyConfig, support::kTinyGpt2}) {
    model_ = model::Model(config::ModelShape::parse(config, "tiny config"));
    for (const int32_t device_blocks : {0, 2}) {
      SCOPED_TRACE(std::string(config).substr(0, 40) + " " + std::to_string(device_blocks));
      ZenFlowSettings settings{.optimizer = kOptimizer};
      settings.topk_ratio = 0.2;
      settings.schedule = {.update_interval = 2, .warmup_steps = 1, .select_interval = 3, .overlaps = true};
      settings.select_margin = 1;
      settings.num_device_blocks = device_blocks;
      settings.piece_bytes = 3000;
      expect_same_as_emulated<ZenFlow>(settings, {.steps = 16, .micro_batches = 2});
    }
  }
}

// A checkpoint without memory for a copy refers to what stays where it is; a GPU's part does not.
TEST_F(FakeGpuTest, ViewsHoldWhatCopiesHold) {
  ZenFlowSettings settings{.optimizer = kOptimizer};
  settings.topk_ratio = 0.2;
  settings.schedule = {.update_interval = 2, .warmup_steps = 1, .select_interval = 3, .overlaps = true};
  ZenFlow policy(model_, std::make_unique<FakeGpu>(), random_weights(model_, 1), settings);
  for (int64_t i = 0; i < 8; ++i) Relay{}.step(policy, i);
  EXPECT_GT(policy.exchanged_bytes_of(graph::LaneKind::kD2h), 0) << "columns changed sides";
  PolicyState copies, views(PolicyState::Hold::kViews);
  policy.save(copies);
  policy.save(views);
  expect_equal_states(views, copies);
}

}  // namespace
}  // namespace headrace::policy
