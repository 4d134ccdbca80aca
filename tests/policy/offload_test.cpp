#include "headrace/policy/offload.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/device/emulated.h"
#include "headrace/policy/resident.h"
#include "tests/support/tiny_model.h"

namespace headrace::policy {
namespace {

using support::random_batch;
using support::random_weights;

constexpr OptimizerSettings kOptimizer{.weight_decay = 0.1, .clip = 1};

std::string text_of(const OffloadSettings& s, int64_t micro_batches) {
  return "overlap " + std::to_string(static_cast<int>(s.overlap)) + ", clip " + std::to_string(s.optimizer.clip) +
         ", device blocks " + std::to_string(s.num_device_blocks) + ", slots " + std::to_string(s.gradient_slots) +
         ", order " + std::to_string(static_cast<int>(s.order)) + ", workers " + std::to_string(s.host_workers) +
         ", piece bytes " + std::to_string(s.piece_bytes) + ", recompute " + std::to_string(s.recompute) +
         ", micro-batches " + std::to_string(micro_batches);
}

class OffloadTest : public ::testing::Test {
 protected:
  OffloadTest() { at::set_num_threads(1); }

  static std::vector<model::Batch> batches(int64_t micro_batches, uint64_t seed) {
    std::vector<model::Batch> result;
    for (int64_t i = 0; i < micro_batches; ++i) {
      result.push_back(random_batch({5 + i, 9}, seed * 10 + static_cast<uint64_t>(i)));
    }
    return result;
  }

  std::unique_ptr<Offload> make(OffloadSettings settings, device::EmulatedSettings device = {}) {
    return std::make_unique<Offload>(model_, device::make_emulated_device(device), random_weights(model_, 1),
                                     std::move(settings));
  }

  // Some steps of both: losses, norms and weights are the same bits.
  // `promises`: each step is told the next one's micro-batches; with "wrong" another step's.
  enum class Promises { kNone, kRight, kWrong };
  void expect_equal_to_resident(OffloadSettings settings, int64_t micro_batches, device::EmulatedSettings device = {},
                                Promises promises = Promises::kRight, int64_t steps = 4) {
    SCOPED_TRACE(text_of(settings, micro_batches));
    Resident reference(model_, random_weights(model_, 1), {settings.optimizer, settings.recompute, settings.is_frozen});
    const auto policy = make(settings, std::move(device));
    for (int64_t step = 0; step < steps; ++step) {
      const std::vector<model::Batch> input = batches(micro_batches, static_cast<uint64_t>(step) + 1);
      const StepResult expected = reference.step({step, input, 1e-2});
      const uint64_t promised = static_cast<uint64_t>(step) + (promises == Promises::kWrong ? 7 : 2);
      std::vector<model::Batch> next;
      if (promises != Promises::kNone) next = batches(micro_batches, promised);
      const StepResult result = policy->step({step, input, 1e-2, next});
      ASSERT_EQ(result.loss_sum, expected.loss_sum) << "step " << step;
      ASSERT_EQ(result.gradient_norm, expected.gradient_norm) << "step " << step;
      ASSERT_EQ(result.clip_factor, expected.clip_factor) << "step " << step;
    }
    policy->finish_updates();
    for (size_t i = 0; i < policy->blocks().size(); ++i) {
      ASSERT_TRUE(at::equal(policy->blocks()[i].weights, reference.blocks()[i].weights)) << model_.blocks()[i].name;
    }
    EXPECT_EQ(policy->trained_parameters(), reference.trained_parameters());
  }

  const model::Model model_ = support::tiny_model();
};

TEST_F(OffloadTest, IsBitwiseEqualToResident) {
  for (const Overlap overlap : {Overlap::kNone, Overlap::kExact}) {
    for (const double clip : {0.0, 0.5}) {
      for (const int64_t micro_batches : {1, 3}) {
        expect_equal_to_resident({.optimizer = {.weight_decay = 0.1, .clip = clip}, .overlap = overlap}, micro_batches);
      }
    }
  }
}

TEST_F(OffloadTest, LayerMajorSlotsPiecesAndRecomputationChangeNoBit) {
  for (const int64_t micro_batches : {1, 4}) {
    expect_equal_to_resident({.optimizer = kOptimizer,
                              .recompute = true,
                              .gradient_slots = 1,
                              .order = graph::ComputeOrder::kLayerMajor,
                              .host_workers = 2,
                              .piece_bytes = 1000},
                             micro_batches);
  }
}

// Case "mode equality": twenty steps, whatever the size of what travels at a time.
TEST_F(OffloadTest, TwentyStepsAreTheSameForAnyPieces) {
  for (const int64_t piece_bytes : {0, 64, 1000, 4096, 1 << 20}) {
    expect_equal_to_resident({.optimizer = kOptimizer, .piece_bytes = piece_bytes}, 1, {}, Promises::kRight, 20);
  }
}

// Rows of the embedding that the next step needs go first, others later; whatever was promised, no bit changes. Slow
// links make a forward that does not wait for its rows visible.
TEST_F(OffloadTest, SendingNeededRowsFirstChangesNoBit) {
  for (const Promises promises : {Promises::kNone, Promises::kRight, Promises::kWrong}) {
    for (const int64_t micro_batches : {1, 2}) {
      for (const bool first : {false, true}) {
        expect_equal_to_resident({.optimizer = kOptimizer, .piece_bytes = 2000, .sends_needed_rows_first = first},
                                 micro_batches, {.to_device = {.bytes_per_s = 2e6}}, promises);
      }
    }
  }
}

TEST_F(OffloadTest, AnyShareOfTheStateOnTheDeviceChangesNoBit) {
  for (int32_t blocks = 0; blocks <= model_.num_blocks(); ++blocks) {
    expect_equal_to_resident({.optimizer = kOptimizer, .num_device_blocks = blocks}, 2);
    expect_equal_to_resident({.optimizer = {.weight_decay = 0.1}, .num_device_blocks = blocks}, 2);
  }
}

// A host so slow that the share must grow; the moments move along.
TEST_F(OffloadTest, TheShareChosenByTimesChangesNoBit) {
  for (const int32_t slots : {0, 1}) {
    const OffloadSettings settings{
        .optimizer = kOptimizer, .num_device_blocks = kAutoShare, .gradient_slots = slots, .host_bytes_per_s = 2e7};
    expect_equal_to_resident(settings, 1);
    const auto policy = make(settings);
    for (int64_t step = 0; step < 3; ++step) policy->step({step, batches(1, 1), 1e-3});
    EXPECT_GT(policy->num_device_blocks(), 0);
  }
}

// Plans drawn at random, with slow and fast lanes: the property that names the policy.
TEST_F(OffloadTest, RandomPlansAreBitwiseEqualToResident) {
  Rng rng(11);
  const auto draw = [&](uint64_t below) { return rng.below(below); };
  for (int i = 0; i < 60; ++i) {
    OffloadSettings settings{.optimizer = {.weight_decay = 0.1, .clip = draw(2) == 0 ? 0 : 0.5}};
    settings.overlap = draw(5) == 0 ? Overlap::kNone : Overlap::kExact;
    settings.recompute = draw(2) == 0;
    settings.order = draw(2) == 0 ? graph::ComputeOrder::kLayerMajor : graph::ComputeOrder::kMicroBatchMajor;
    const auto micro_batches = static_cast<int64_t>(1 + draw(3));
    const bool may_share = micro_batches == 1 || settings.order == graph::ComputeOrder::kLayerMajor;
    settings.gradient_slots = may_share ? static_cast<int32_t>(draw(3)) : 0;
    settings.host_workers = static_cast<int32_t>(1 + draw(3));
    settings.piece_bytes = draw(2) == 0 ? 0 : static_cast<int64_t>(256 + draw(8192));
    if (settings.overlap == Overlap::kExact) settings.num_device_blocks = static_cast<int32_t>(draw(6));
    if (draw(3) == 0) settings.host_bytes_per_s = 2e7;
    device::EmulatedSettings device;
    if (draw(3) == 0) device.to_device.bytes_per_s = 3e7;
    if (draw(3) == 0) device.to_host = {.bytes_per_s = 3e7, .latency_s = 1e-4};
    expect_equal_to_resident(settings, micro_batches, device);
  }
}

TEST_F(OffloadTest, ABlocksGradientCrossesTheLinkOnceAStep) {
  for (const graph::ComputeOrder order : {graph::ComputeOrder::kLayerMajor, graph::ComputeOrder::kMicroBatchMajor}) {
    const auto policy = make({.optimizer = kOptimizer, .order = order});
    for (int64_t step = 0; step < 3; ++step) policy->step({step, batches(4, 1), 1e-3});
    policy->finish_updates();
    int64_t numel = 0;
    for (const model::BlockSpec& block : model_.blocks()) numel += block.numel;
    EXPECT_EQ(policy->bytes_of(graph::LaneKind::kD2h), 3 * 4 * numel);
    EXPECT_EQ(policy->bytes_of(graph::LaneKind::kH2d), 3 * 4 * numel);
  }
}

TEST_F(OffloadTest, FrozenParametersStay) {
  const auto is_embedding = [](std::string_view name) { return name == "model.embed_tokens.weight"; };
  expect_equal_to_resident({.optimizer = kOptimizer, .is_frozen = is_embedding}, 2);
}

TEST_F(OffloadTest, ABudgetThatIsTooSmallIsRefusedByName) {
  const auto refusal = [&](const OffloadSettings& settings) -> std::string {
    try {
      make(settings)->step({0, batches(1, 1), 1e-3});
    } catch (const CapacityError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_NE(refusal({.device_budget = 10000}).find("--device-budget is 9.77 KiB"), std::string::npos);
  EXPECT_NE(refusal({.host_budget = 10000}).find("--host-budget"), std::string::npos);
  const auto roomy = make({.optimizer = kOptimizer});
  roomy->step({0, batches(1, 1), 1e-3});
  const int64_t peak = roomy->device_budget().peak();
  EXPECT_EQ(refusal({.device_budget = peak + 4096}), "none");
  EXPECT_NE(refusal({.device_budget = peak - 4096}).find("--device-budget"), std::string::npos);
}

TEST_F(OffloadTest, NothingIsAskedFromTheSystemAfterTheFirstStep) {
  const auto policy = make({.optimizer = kOptimizer});
  policy->step({0, batches(2, 1), 1e-3});
  const int64_t device = policy->device_budget().system_allocations(),
                host = policy->host_budget().system_allocations();
  for (int64_t step = 1; step < 4; ++step) policy->step({step, batches(2, 1), 1e-3});
  EXPECT_EQ(policy->device_budget().system_allocations(), device);
  EXPECT_EQ(policy->host_budget().system_allocations(), host);
}

TEST_F(OffloadTest, ANonFiniteGradientIsNamedAndUpdatesNothing) {
  auto weights = random_weights(model_, 1);
  weights[2][5] = std::numeric_limits<float>::infinity();
  Offload policy(model_, device::make_emulated_device({}), weights, {.optimizer = kOptimizer});
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

// A gradient that overflows while weights, outputs and loss are sound: the element is named, with shared buffers too.
TEST_F(OffloadTest, AnOverflowingGradientIsNamedByItsElement) {
  auto weights = random_weights(model_, 1);
  const model::ParameterSpec* norm = model_.blocks().back().find(model::Role::kFinalNorm);
  weights.back().slice(0, norm->offset, norm->offset + norm->numel).fill_(0.0F);
  weights.back()[norm->offset] = 1e-30F;
  weights.front().mul_(1e37F);  // logits stay near zero, the gradient of the final norm does not
  Offload policy(model_, device::make_emulated_device({}), weights, {.optimizer = kOptimizer, .gradient_slots = 1});
  try {
    policy.step({0, batches(1, 1), 1e-3});
    FAIL() << "an overflow went unseen";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find(", gradient "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("element"), std::string::npos) << error.what();
  }
}

// The relaxed ways to clip, against the same maths written out.
TEST_F(OffloadTest, ALaggedNormClipsByTheStepBefore) {
  const auto policy = make({.optimizer = {.clip = 0.1}, .clip_norm = ClipNorm::kLagged});
  const StepResult first = policy->step({0, batches(1, 1), 1e-3});
  EXPECT_NEAR(first.clip_factor, 0.1 / first.gradient_norm, 1e-5);
  const StepResult second = policy->step({1, batches(1, 2), 1e-3});
  EXPECT_NEAR(second.clip_factor, 0.1 / first.gradient_norm, 1e-5);
  EXPECT_NE(second.gradient_norm, first.gradient_norm);
}

TEST_F(OffloadTest, SettingsThatContradictEachOtherAreRefused) {
  EXPECT_THROW(make({.num_device_blocks = 6}), ConfigError);
  EXPECT_THROW(make({.host_workers = 0}), ConfigError);
  EXPECT_THROW(make({.overlap = Overlap::kNone, .num_device_blocks = 1}), ConfigError);
}

}  // namespace
}  // namespace headrace::policy
