// Checks that nothing is lost between save and restore: a run is compared with one that is saved and restored after
// every step, and with the run that was saved.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
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

inline void expect_equal_states(const PolicyState& state, const PolicyState& expected) {
  ASSERT_EQ(state.tensors().size(), expected.tensors().size());
  for (const StateTensor& tensor : expected.tensors()) {
    const auto found = state.find(tensor.name);
    ASSERT_TRUE(found) << tensor.name;
    ASSERT_TRUE(std::ranges::equal(found->bytes, tensor.bytes)) << tensor.name;
  }
}

// What a save while training goes on is tried with.
struct SavingWhileStepping {
  int64_t steps = 3;                                                                    // during the copy
  std::function<void()> before_part = [] {};                                            // of the copy, by its thread
  std::function<void(const std::future<void>& copies)> meanwhile = [](const auto&) {};  // before the steps
};

// `saved` and `expected` have done `done` steps alike: what another thread copies of the one during the next steps is
// the state that the other has now, and both go on alike.
inline void expect_saved_while_stepping(Policy& saved, Policy& expected, int64_t done,
                                        const SavingWhileStepping& trial) {
  const Relay relay{};
  PolicyState at_once, later;
  expected.save(at_once);
  {
    const StateCopy copy = saved.begin_save();
    EXPECT_EQ(copy.facts, at_once.facts());
    auto copies = std::async(std::launch::async, [&] {
      for (const auto& copy_part : copy.parts) {
        trial.before_part();
        copy_part(later);
      }
    });
    trial.meanwhile(copies);
    for (int64_t i = done; i < done + trial.steps; ++i) {
      ASSERT_EQ(relay.step(saved, i).loss_sum, relay.step(expected, i).loss_sum) << "step " << i;
    }
    copies.get();
  }
  expect_equal_states(later, at_once);
  expect_equal_weights(trained_weights(saved), trained_weights(expected));
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
