// --on-nan skip: a step that is not finite is as if it had not been. A row of the embedding is not a number: a batch
// with its token makes such a step, one without it does not notice.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

#include "headrace/device/emulated.h"
#include "headrace/policy/non_finite.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/resident.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "tests/policy/zenflow/reference.h"
#include "tests/support/tiny_model.h"

namespace headrace::policy {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kBadToken = 66;
constexpr OptimizerSettings kClipping{.weight_decay = 0.1, .clip = 0.5, .skips_non_finite = true};
constexpr OptimizerSettings kFree{.weight_decay = 0.1, .skips_non_finite = true};

class SkipTest : public ::testing::Test {
 protected:
  SkipTest() { at::set_num_threads(1); }

  std::vector<at::Tensor> weights() const {
    std::vector<at::Tensor> weights = support::random_weights(model_, 1);
    const model::ParameterSpec& table = *model_.blocks().front().find(model::Role::kTokenEmbedding);
    const int64_t width = table.numel / model_.shape().vocab_size, begin = table.offset + kBadToken * width;
    weights.front().slice(0, begin, begin + width).fill_(std::numeric_limits<float>::quiet_NaN());
    return weights;
  }

  std::unique_ptr<Policy> resident(const OptimizerSettings& optimizer) const {
    return std::make_unique<Resident>(model_, weights(), Resident::Settings{optimizer});
  }
  std::unique_ptr<Policy> offload(const OffloadSettings& settings) const {
    return std::make_unique<Offload>(model_, device::make_emulated_device({}), weights(), settings);
  }

  // `is_bad`: the second micro-batch has the token.
  static std::vector<model::Batch> batches(uint64_t seed, bool is_bad) {
    std::vector<model::Batch> batches = {support::random_batch({5, 9}, seed, kBadToken),
                                         support::random_batch({6, 4}, seed + 100, kBadToken)};
    if (is_bad) batches.back().ids_N[7] = kBadToken;
    return batches;
  }

  static StepResult step(Policy& policy, int64_t number, uint64_t seed, bool is_bad) {
    const std::vector<model::Batch> input = batches(seed, is_bad);
    return policy.step({number, input, 1e-2});
  }

  static bool are_same(const at::Tensor& a, const at::Tensor& b) {
    return at::equal(a.isnan(), b.isnan()) && at::equal(a.nan_to_num(), b.nan_to_num());
  }

  static void expect_same_weights(const Policy& policy, const std::vector<at::Tensor>& expected) {
    const std::vector<at::Tensor> found = weights_of(policy);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(are_same(found[i], expected[i])) << "block " << i;
  }

  // Steps 2, 4 and 5 are bad; a policy that never saw them has the same state afterwards.
  static void expect_no_trace(Policy& policy, Policy& expected) {
    const std::vector<bool> is_bad = {false, true, false, true, true, false};
    for (size_t i = 0; i < is_bad.size(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i + 1));
      const StepResult result = step(policy, static_cast<int64_t>(i), i + 1, is_bad[i]);
      ASSERT_EQ(!result.skipped.empty(), is_bad[i]) << result.skipped;
      if (!is_bad[i]) {
        ASSERT_EQ(result.loss_sum, step(expected, static_cast<int64_t>(i), i + 1, false).loss_sum);
      }
      policy.finish_updates();
      expected.finish_updates();
      expect_same_weights(policy, weights_of(expected));
    }
    PolicyState state, expected_state;
    state.begin();
    expected_state.begin();
    policy.save(state);
    expected.save(expected_state);
    EXPECT_EQ(state.facts().at("updates"), expected_state.facts().at("updates"));
  }

  model::Model model_{config::ModelShape::parse(
      std::string(support::kTinyConfig).replace(std::string(support::kTinyConfig).find("true"), 4, "false"), "untied")};
};

TEST_F(SkipTest, ResidentLeavesNoTrace) {
  for (const OptimizerSettings& optimizer : {kClipping, kFree}) {
    expect_no_trace(*resident(optimizer), *resident(optimizer));
  }
}

TEST_F(SkipTest, OffloadLeavesNoTrace) {
  for (const OptimizerSettings& optimizer : {kClipping, kFree}) {
    for (const Overlap overlap : {Overlap::kNone, Overlap::kExact}) {
      for (const int32_t device_blocks : {0, 2}) {
        if (overlap == Overlap::kNone && device_blocks > 0) continue;
        for (const int64_t piece_bytes : {0, 1000}) {
          SCOPED_TRACE(std::to_string(static_cast<int>(overlap)) + " " + std::to_string(device_blocks) + " " +
                       std::to_string(piece_bytes) + " clip " + std::to_string(optimizer.clip));
          const auto policy = offload({.optimizer = optimizer,
                                       .overlap = overlap,
                                       .num_device_blocks = device_blocks,
                                       .piece_bytes = piece_bytes});
          expect_no_trace(*policy, *resident(optimizer));
        }
      }
    }
  }
}

TEST_F(SkipTest, ALaggedNormIsThatOfTheLastStepThatCounted) {
  const OffloadSettings settings{.optimizer = kClipping, .clip_norm = ClipNorm::kLagged};
  expect_no_trace(*offload(settings), *offload(settings));
}

TEST_F(SkipTest, WhatWasNotFiniteIsNamed) {
  const auto policy = offload({.optimizer = kFree});
  const StepResult result = step(*policy, 0, 1, true);
  EXPECT_THAT(result.skipped, StartsWith("loss nan; gradients of 5 of 5 blocks, in backward first "));
  EXPECT_THAT(result.skipped, HasSubstr(model_.blocks().back().name));
  EXPECT_EQ(skipped_text(model_, 2.5, std::vector<double>{1e300, 1, 1, std::numeric_limits<double>::infinity(), 1}),
            "loss 2.500000; gradients of 1 of 5 blocks, in backward first " + model_.blocks()[3].name);
}

class ZenFlowSkipTest : public SkipTest, public ::testing::WithParamInterface<zenflow::WindowSum> {
 protected:
  std::unique_ptr<ZenFlow> make(const ZenFlowSettings& settings) const {
    return std::make_unique<ZenFlow>(model_, device::make_emulated_device({}), weights(), settings);
  }
  ZenFlowSettings settings(int64_t interval, int64_t select, bool overlaps = true) const {
    return {.optimizer = interval % 2 == 0 ? kClipping : kFree,
            .topk_ratio = 0.2,
            .schedule = {.update_interval = interval, .select_interval = select, .overlaps = overlaps},
            .select_margin = 1,
            .window_sum = GetParam(),
            .num_device_blocks = interval == 3 ? 1 : 0,
            .piece_bytes = 2000};
  }
  // Some windows have no sound step at all.
  static bool is_bad(int64_t step) { return step % 5 == 2 || (step > 10 && step < 17); }
};

TEST_P(ZenFlowSkipTest, WindowsGoOnWithoutTheStep) {
  for (const int64_t interval : {1, 2, 3, 4}) {
    for (const bool overlaps : {true, false}) {
      const ZenFlowSettings settings = this->settings(interval, interval == 1 ? 3 : 2 * interval, overlaps);
      SCOPED_TRACE("S " + std::to_string(interval) + (overlaps ? "" : ", no overlap"));
      zenflow::Reference reference(model_, weights(), settings);
      const auto policy = make(settings);
      for (int64_t i = 0; i < 24; ++i) {
        SCOPED_TRACE("step " + std::to_string(i + 1));
        const std::vector<model::Batch> input = batches(static_cast<uint64_t>(i) + 1, is_bad(i));
        const StepResult expected = reference.step({i, input, 1e-2});
        const StepResult result = policy->step({i, input, 1e-2});
        ASSERT_EQ(result.skipped.empty(), !is_bad(i));
        if (!is_bad(i)) {
          ASSERT_EQ(result.loss_sum, expected.loss_sum);
        }
        if (i % 3 == 0) {
          policy->finish_updates();
          expect_same_weights(*policy, reference.weights());
        }
      }
      EXPECT_LE(policy->staleness().largest(), 2 * interval - 1);
      policy->finish_training();
      expect_same_weights(*policy, reference.finish());
    }
  }
}

// A checkpoint between any two steps, amid windows of skipped steps too.
TEST_P(ZenFlowSkipTest, ARunGoesOnAmidSkippedSteps) {
  for (const int64_t interval : {1, 4}) {
    for (int64_t save_after = 1; save_after < 20; save_after += 3) {
      const auto straight = make(settings(interval, 8)), first = make(settings(interval, 8)),
                 second = make(settings(interval, 8));
      for (int64_t i = 0; i < 22; ++i) {
        const auto seed = static_cast<uint64_t>(i) + 1;
        step(*straight, i, seed, is_bad(i));
        step(i < save_after ? *first : *second, i, seed, is_bad(i));
        if (i + 1 != save_after) continue;
        PolicyState state;
        state.begin();
        first->save(state);
        second->restore(state, {});
      }
      straight->finish_training();
      second->finish_training();
      SCOPED_TRACE("S " + std::to_string(interval) + ", saved after " + std::to_string(save_after));
      expect_same_weights(*second, weights_of(*straight));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sums, ZenFlowSkipTest,
                         ::testing::Values(zenflow::WindowSum::kSlots, zenflow::WindowSum::kRunning),
                         [](const auto& sum) { return sum.param == zenflow::WindowSum::kSlots ? "Slots" : "Running"; });

}  // namespace
}  // namespace headrace::policy
