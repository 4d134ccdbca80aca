#include "headrace/policy/zenflow/zenflow.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/device/emulated.h"
#include "headrace/policy/resident.h"
#include "tests/policy/zenflow/reference.h"
#include "tests/support/tiny_model.h"

namespace headrace::policy {
namespace {

using graph::LaneKind;
using support::random_batch;
using support::random_weights;
using zenflow::WindowSum;

constexpr OptimizerSettings kOptimizer{.weight_decay = 0.1, .clip = 0.5};

std::string text_of(const ZenFlowSettings& s) {
  return "k " + std::to_string(s.topk_ratio) + ", S " + std::to_string(s.schedule.update_interval) + ", R " +
         std::to_string(s.schedule.select_interval) + ", U " + std::to_string(s.schedule.warmup_steps) + ", overlap " +
         std::to_string(s.schedule.overlaps) + ", stagger " + std::to_string(s.schedule.staggers) + ", sum " +
         std::to_string(static_cast<int>(s.window_sum)) + ", clip " + std::to_string(s.optimizer.clip) +
         ", device blocks " + std::to_string(s.num_device_blocks) + ", workers " + std::to_string(s.host_workers) +
         ", piece bytes " + std::to_string(s.piece_bytes) + ", order " + std::to_string(static_cast<int>(s.order));
}

class ZenFlowTest : public ::testing::Test {
 protected:
  ZenFlowTest() { at::set_num_threads(1); }

  static std::vector<model::Batch> batches(int64_t micro_batches, uint64_t seed) {
    std::vector<model::Batch> result;
    for (int64_t i = 0; i < micro_batches; ++i) {
      result.push_back(random_batch({5 + i, 9}, seed * 10 + static_cast<uint64_t>(i)));
    }
    return result;
  }

  std::unique_ptr<ZenFlow> make(ZenFlowSettings settings, device::EmulatedSettings device = {}) {
    return std::make_unique<ZenFlow>(model_, device::make_emulated_device(device), random_weights(model_, 1),
                                     std::move(settings));
  }

  static double rate_at(int64_t step) { return 1e-2 / static_cast<double>(1 + step); }

  static void expect_weights(std::span<const model::BlockBuffers> blocks, const std::vector<at::Tensor>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(at::equal(blocks[i].weights, expected[i])) << "block " << i;
    }
  }

  void expect_equal_to_resident(const ZenFlowSettings& settings, int64_t micro_batches = 1) {
    SCOPED_TRACE(text_of(settings));
    Resident reference(model_, random_weights(model_, 1), {settings.optimizer, settings.recompute, settings.is_frozen});
    const auto policy = make(settings);
    for (int64_t step = 0; step < 6; ++step) {
      const std::vector<model::Batch> input = batches(micro_batches, static_cast<uint64_t>(step) + 1);
      const StepResult expected = reference.step({step, input, rate_at(step)});
      const StepResult result = policy->step({step, input, rate_at(step)});
      ASSERT_EQ(result.loss_sum, expected.loss_sum) << "step " << step;
      ASSERT_EQ(result.gradient_norm, expected.gradient_norm) << "step " << step;
    }
    policy->finish_training();
    expect_weights(policy->blocks(), weights_of(reference));
    EXPECT_EQ(policy->staleness().largest(), 0);
  }

  // Losses at each step and the weights at the end are the reference's bits. `drains`: finish_updates after each step.
  void expect_equal_to_reference(const ZenFlowSettings& settings, int64_t steps, int64_t micro_batches = 1,
                                 device::EmulatedSettings device = {}, bool drains = false) {
    SCOPED_TRACE(text_of(settings));
    zenflow::Reference reference(model_, random_weights(model_, 1), settings);
    const auto policy = make(settings, std::move(device));
    for (int64_t step = 0; step < steps; ++step) {
      const std::vector<model::Batch> input = batches(micro_batches, static_cast<uint64_t>(step) + 1);
      const StepResult expected = reference.step({step, input, rate_at(step)});
      const StepResult result = policy->step({step, input, rate_at(step)});
      ASSERT_EQ(result.loss_sum, expected.loss_sum) << "step " << step;
      ASSERT_EQ(result.clip_factor, expected.clip_factor) << "step " << step;
      if (!drains) continue;
      policy->finish_updates();
      expect_weights(policy->blocks(), reference.weights());
    }
    policy->finish_training();
    expect_weights(policy->blocks(), reference.finish());
    EXPECT_LE(policy->staleness().largest(), 2 * settings.schedule.update_interval - 1);
  }

  model::Model model_ = support::tiny_model();
};

// Check a.
TEST_F(ZenFlowTest, WithEveryColumnImportantItIsAdamW) {
  for (const int64_t interval : {1, 4}) {
    expect_equal_to_resident({.optimizer = kOptimizer, .topk_ratio = 1, .schedule = {.update_interval = interval}}, 2);
  }
  expect_equal_to_resident({.optimizer = kOptimizer, .num_device_blocks = 5});
}

// Check a.
TEST_F(ZenFlowTest, WithWindowsOfOneStepAndNoOverlapItIsAdamW) {
  for (const double topk : {0.01, 0.3}) {
    for (const WindowSum sum : {WindowSum::kSlots, WindowSum::kRunning}) {
      for (const int64_t select : {1, 2, 100}) {
        expect_equal_to_resident({.optimizer = kOptimizer,
                                  .topk_ratio = topk,
                                  .schedule = {.update_interval = 1, .select_interval = select, .overlaps = false},
                                  .select_margin = 1,
                                  .window_sum = sum,
                                  .piece_bytes = 2000},
                                 2);
      }
    }
  }
}

TEST_F(ZenFlowTest, TheWarmUpIsAdamW) {
  expect_equal_to_resident({.optimizer = kOptimizer, .schedule = {.update_interval = 4, .warmup_steps = 6}});
}

TEST_F(ZenFlowTest, IsWhatTheReferenceComputes) {
  for (const bool overlaps : {true, false}) {
    for (const int64_t interval : {1, 2, 3}) {
      const ZenFlowSettings settings{.optimizer = kOptimizer,
                                     .topk_ratio = 0.2,
                                     .schedule = {.update_interval = interval,
                                                  .warmup_steps = 2,
                                                  .select_interval = interval,
                                                  .overlaps = overlaps},
                                     .select_margin = 1,
                                     .piece_bytes = 1500};
      expect_equal_to_reference(settings, 12);
    }
  }
}

TEST_F(ZenFlowTest, IsWhatTheReferenceComputesWhereChannelsAreRows) {
  model_ = model::Model(config::ModelShape::parse(support::kTinyGpt2, "tiny gpt2"));
  for (const WindowSum sum : {WindowSum::kSlots, WindowSum::kRunning}) {
    expect_equal_to_reference({.optimizer = kOptimizer,
                               .topk_ratio = 0.2,
                               .schedule = {.update_interval = 2, .select_interval = 2},
                               .select_margin = 1,
                               .window_sum = sum,
                               .piece_bytes = 1500},
                              12);
  }
}

// Check b: what is under way at the same time changes nothing, nor do slow lanes.
TEST_F(ZenFlowTest, OverlapOfTheLanesChangesNoBit) {
  const ZenFlowSettings settings{.optimizer = kOptimizer,
                                 .topk_ratio = 0.2,
                                 .schedule = {.update_interval = 3, .select_interval = 3},
                                 .select_margin = 1,
                                 .piece_bytes = 1500};
  for (const bool drains : {true, false}) {
    expect_equal_to_reference(settings, 14, 2, {}, drains);
    expect_equal_to_reference(settings, 14, 1, {.to_device = {.bytes_per_s = 2e7}, .to_host = {.bytes_per_s = 2e7}},
                              drains);
  }
}

// Check h: a host a hundred times slower than the device.
TEST_F(ZenFlowTest, ASlowHostNeverBreaksTheBound) {
  for (const WindowSum sum : {WindowSum::kSlots, WindowSum::kRunning}) {
    ZenFlowSettings settings{
        .optimizer = kOptimizer, .schedule = {.update_interval = 2}, .window_sum = sum, .host_bytes_per_s = 4e6};
    expect_equal_to_reference(settings, 8);
    const auto policy = make(settings);
    for (int64_t step = 0; step < 8; ++step) policy->step({step, batches(1, 1), 1e-3});
    EXPECT_EQ(policy->staleness().largest(), 3);  // 2 S - 1 steps between a gradient and the forward that sees it
  }
}

// Checks a, b, h and j together, over settings drawn at random.
TEST_F(ZenFlowTest, RandomSettingsAreWhatTheReferenceComputes) {
  Rng rng(23);
  const auto draw = [&](uint64_t below) { return static_cast<int64_t>(rng.below(below)); };
  for (int i = 0; i < 1000; ++i) {
    ZenFlowSettings settings{.optimizer = {.weight_decay = 0.1, .clip = draw(2) == 0 ? 0 : 0.5}};
    settings.topk_ratio = std::vector<double>{0.01, 0.1, 0.3, 0.7}[static_cast<size_t>(draw(4))];
    settings.schedule = {.update_interval = 1 + draw(4),
                         .warmup_steps = 1 + draw(3),
                         .select_interval = 1 + draw(6),
                         .overlaps = draw(4) != 0,
                         .staggers = draw(3) != 0};
    settings.select_margin = draw(2) == 0 ? 1 : 1.25;
    settings.deferred_rate = static_cast<DeferredRate>(draw(3));
    settings.window_sum = draw(2) == 0 ? WindowSum::kSlots : WindowSum::kRunning;
    settings.recompute = draw(4) == 0;
    settings.num_device_blocks = draw(4) == 0 ? static_cast<int32_t>(draw(4)) : 0;
    settings.order = draw(2) == 0 ? graph::ComputeOrder::kLayerMajor : graph::ComputeOrder::kMicroBatchMajor;
    const int64_t micro_batches = 1 + draw(2);
    settings.shares_gradient =
        (micro_batches == 1 || settings.order == graph::ComputeOrder::kLayerMajor) && draw(2) == 0;
    settings.host_workers = static_cast<int32_t>(1 + draw(3));
    settings.piece_bytes = 256 + draw(16384);
    if (draw(8) == 0) settings.host_bytes_per_s = 3e7;
    device::EmulatedSettings device;
    if (draw(8) == 0) device.to_device.bytes_per_s = 5e7;
    if (draw(8) == 0) device.to_host = {.bytes_per_s = 5e7, .latency_s = 1e-5};
    expect_equal_to_reference(settings, 4 + draw(6), micro_batches, device, draw(4) == 0);
    if (HasFatalFailure()) FAIL() << "configuration " << i;
  }
}

// Check d.
TEST_F(ZenFlowTest, CountersCountRealUpdates) {
  for (const int64_t interval : {2, 4}) {
    const auto policy = make({.topk_ratio = 0.25,
                              .schedule = {.update_interval = interval,
                                           .warmup_steps = interval,
                                           .select_interval = 10000,
                                           .staggers = false},
                              .piece_bytes = 1 << 20});
    const std::vector<model::Batch> input = batches(1, 1);
    for (int64_t step = 0; step < 1000; ++step) policy->step({step, input, 1e-5});
    for (const zenflow::BlockColumns& block : policy->columns()) {
      EXPECT_EQ(block.vector_updates, 1000);
      for (const zenflow::MatrixColumns& matrix : block.matrices) {
        for (const int32_t channel : matrix.important) ASSERT_EQ(matrix.updates[static_cast<size_t>(channel)], 1000);
        for (const int32_t channel : matrix.deferred) {
          ASSERT_EQ(matrix.updates[static_cast<size_t>(channel)], interval + (1000 - interval) / interval);
        }
      }
    }
  }
}

// Check f: choosing columns anew at every window's end makes the loss jump nowhere, and leaves it no higher.
TEST_F(ZenFlowTest, SelectingAnewLeavesTheLossContinuous) {
  std::vector<std::vector<double>> losses;
  for (const int64_t select : {2, 1000}) {
    const auto policy = make({.optimizer = {.clip = 1},
                              .topk_ratio = 0.2,
                              .schedule = {.update_interval = 2, .select_interval = select},
                              .select_margin = 1});
    std::vector<double>& run = losses.emplace_back();
    for (int64_t step = 0; step < 60; ++step) {
      run.push_back(policy->step({step, batches(1, 1 + static_cast<uint64_t>(step) % 2), 1e-3}).loss());
    }
  }
  double largest = 0;
  for (size_t i = 2; i < losses[0].size(); ++i) {
    largest = std::max(largest, losses[0][i] - losses[0][i - 2]);  // the same batch
    EXPECT_LT(losses[0][i], losses[1][i] + 0.01 * losses[1][0]) << i;
  }
  EXPECT_LT(largest, 0.01 * losses[0][0]);
  EXPECT_LT(losses[0].back(), losses[0].front());
}

// Check g.
TEST_F(ZenFlowTest, BytesOfTheLinksAreTheFormulas) {
  int64_t numel = 0;
  for (const model::BlockSpec& block : model_.blocks()) numel += block.numel;
  for (const auto& [topk, interval] : std::vector<std::pair<double, int64_t>>{{0.1, 4}, {0.25, 2}, {0.5, 3}}) {
    const auto policy = make(
        {.topk_ratio = topk, .schedule = {.update_interval = interval, .select_interval = 1 << 20, .staggers = false}});
    const std::vector<model::Batch> input = batches(1, 1);
    for (int64_t step = 0; step < 1 + 2 * interval; ++step) policy->step({step, input, 1e-3});
    policy->finish_updates();
    const int64_t down = policy->bytes_of(LaneKind::kD2h), up = policy->bytes_of(LaneKind::kH2d);
    const int64_t steps = 12 * interval;
    for (int64_t step = 0; step < steps; ++step) policy->step({step, input, 1e-3});
    policy->finish_updates();
    const auto by_parameter = [&](int64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(4 * numel * steps);
    };
    EXPECT_NEAR(by_parameter(policy->bytes_of(LaneKind::kD2h) - down), 1 - topk, 0.02) << topk;
    EXPECT_NEAR(by_parameter(policy->bytes_of(LaneKind::kH2d) - up), (1 - topk) / static_cast<double>(interval), 0.02);
  }
}

TEST_F(ZenFlowTest, TheIntervalFollowsASlowHostUpToItsLimit) {
  const auto policy = make({.optimizer = kOptimizer,
                            .schedule = {.update_interval = 1},
                            .auto_interval = true,
                            .limits = {.smallest = 1, .largest = 5},
                            .host_bytes_per_s = 4e6});
  for (int64_t step = 0; step < 24; ++step) policy->step({step, batches(1, 1), 1e-3});
  EXPECT_EQ(policy->update_interval(), 5);
  EXPECT_LE(policy->staleness().largest(), 9);
}

TEST_F(ZenFlowTest, FrozenParametersStay) {
  const auto is_up = [](std::string_view name) { return name.find("up_proj") != std::string_view::npos; };
  const ZenFlowSettings settings{.optimizer = kOptimizer, .is_frozen = is_up, .schedule = {.update_interval = 2}};
  expect_equal_to_reference(settings, 8);
  const auto policy = make(settings);
  for (const std::string& name : policy->trained_parameters()) EXPECT_FALSE(is_up(name)) << name;
}

TEST_F(ZenFlowTest, NothingIsAskedFromTheSystemAfterTheFirstStep) {
  const auto policy = make({.optimizer = kOptimizer, .schedule = {.update_interval = 2, .select_interval = 2}});
  policy->step({0, batches(2, 1), 1e-3});
  const int64_t device = policy->device_budget().system_allocations(),
                host = policy->host_budget().system_allocations();
  for (int64_t step = 1; step < 8; ++step) policy->step({step, batches(2, 1), 1e-3});
  EXPECT_EQ(policy->device_budget().system_allocations(), device);
  EXPECT_EQ(policy->host_budget().system_allocations(), host);
}

TEST_F(ZenFlowTest, ANonFiniteGradientIsNamedAndUpdatesNothing) {
  auto weights = random_weights(model_, 1);
  weights[2][5] = std::numeric_limits<float>::infinity();
  ZenFlow policy(model_, device::make_emulated_device({}), weights, {.optimizer = kOptimizer});
  try {
    policy.step({4, batches(1, 1), 1e-3});
    FAIL() << "an infinite weight went unseen";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("step 5"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("block layer.1"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("Nothing was updated"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(at::equal(policy.blocks()[1].weights, weights[1]));
}

TEST_F(ZenFlowTest, BudgetsAreHard) {
  EXPECT_THROW(make({.device_budget = 10000}), CapacityError);
  EXPECT_THROW(make({.host_budget = 10000}), CapacityError);
}

TEST_F(ZenFlowTest, SettingsThatContradictEachOtherAreRefused) {
  EXPECT_THROW(make({.topk_ratio = 0}), ConfigError);
  EXPECT_THROW(make({.topk_ratio = 1.1}), ConfigError);
  EXPECT_THROW(make({.select_margin = 0.9}), ConfigError);
  EXPECT_THROW(make({.num_device_blocks = 6}), ConfigError);
  EXPECT_THROW(make({.host_workers = 0}), ConfigError);
  EXPECT_THROW(make({.auto_interval = true, .limits = {.smallest = 3, .largest = 2}}), ConfigError);
}

}  // namespace
}  // namespace headrace::policy
