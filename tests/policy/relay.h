// Checks that nothing is lost between save and restore: a run is compared with one that is saved and restored after
// every step, and with the run that was saved.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "headrace/policy/policy.h"
#include "tests/support/tiny_model.h"

namespace headrace::policy {

using MakePolicy = std::function<std::unique_ptr<Policy>()>;

struct Relay {
  int64_t steps = 12;
  int64_t micro_batches = 1;

  StepResult step(Policy& policy, int64_t number) const {
    std::vector<model::Batch> batches;
    for (int64_t i = 0; i < micro_batches; ++i) {
      batches.push_back(
          support::random_batch({5 + i, 9}, static_cast<uint64_t>(number + 1) * 10 + static_cast<uint64_t>(i)));
    }
    return policy.step({number, batches, 1e-2 / static_cast<double>(1 + number)});
  }

  std::vector<double> losses(Policy& policy, int64_t first) const {
    std::vector<double> losses;
    for (int64_t i = first; i < steps; ++i) losses.push_back(step(policy, i).loss_sum);
    return losses;
  }
};

inline std::vector<at::Tensor> trained_weights(Policy& policy) {
  policy.finish_training();
  std::vector<at::Tensor> weights;
  for (const at::Tensor& block : weights_of(policy)) weights.push_back(block.clone());
  return weights;
}

inline void expect_equal_weights(const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) ASSERT_TRUE(at::equal(weights[i], expected[i])) << "block " << i;
}

// `next(i)` makes the policy that takes step i, after restoring what the one before saved.
inline void expect_relay(const MakePolicy& reference, const std::function<std::unique_ptr<Policy>(int64_t)>& next,
                         const Relay& relay) {
  const std::unique_ptr<Policy> whole = reference(), saving = next(0);
  std::unique_ptr<Policy> runner = next(0);
  PolicyState of_saving, of_runner;
  for (int64_t i = 0; i < relay.steps; ++i) {
    const StepResult expected = relay.step(*whole, i);
    ASSERT_EQ(relay.step(*saving, i).loss_sum, expected.loss_sum) << "saved run, step " << i;
    const StepResult result = relay.step(*runner, i);
    ASSERT_EQ(result.loss_sum, expected.loss_sum) << "restored run, step " << i;
    ASSERT_EQ(result.clip_factor, expected.clip_factor) << "step " << i;
    of_saving.begin();
    saving->save(of_saving);
    of_runner.begin();
    runner->save(of_runner);
    runner = next(i + 1);
    runner->restore(of_runner, {});
  }
  const std::vector<at::Tensor> expected = trained_weights(*whole);
  expect_equal_weights(trained_weights(*saving), expected);
  expect_equal_weights(trained_weights(*runner), expected);
}

}  // namespace headrace::policy
