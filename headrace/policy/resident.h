// The resident policy: weights, gradients and moments of every block stay on the compute device. The reference that
// every other policy is compared with, bit for bit. One thread; libtorch's intra-op threads work inside the calls.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/memory/arena.h"
#include "headrace/model/block.h"
#include "headrace/optim/adamw.h"
#include "headrace/policy/step.h"

namespace headrace::policy {

class Resident {
 public:
  struct Settings {
    OptimizerSettings optimizer;
    bool recompute = false;                                     // keep only block inputs between forward and backward
    std::function<bool(std::string_view name)> is_frozen = {};  // parameters that stay as they are; empty: none
  };

  // `weights`: one flat fp32 buffer a block, taken over and updated in place. `model` must outlive the policy.
  Resident(const model::Model& model, std::vector<at::Tensor> weights, Settings settings);

  // One optimizer step. Throws RunError naming step, block and tensor when loss or gradient are not finite; weights and
  // moments are then those of before the step.
  StepResult step(const StepInput& input);

  // Weights (and gradients) by block, for evaluation, generation and export.
  std::span<const model::BlockBuffers> blocks() const { return blocks_; }
  std::vector<at::Tensor> weights() const;
  // Hugging Face names of the parameters that are updated, in order of blocks.
  const std::vector<std::string>& trained_parameters() const { return trained_parameters_; }
  // [elements] of one moment over all blocks.
  int64_t state_numel() const;

 private:
  void accumulate(const model::Batch& batch, float grad_scale, StepResult& result);
  double gradient_norm() const;
  void update(double learning_rate, float clip_factor);

  const model::Model& model_;
  const Settings settings_;
  std::vector<model::BlockBuffers> blocks_;
  std::vector<optim::ParameterGroups> groups_;  // by block
  std::vector<optim::AdamWState> states_;       // by block
  std::vector<std::string> trained_parameters_;
  const std::shared_ptr<memory::Arena> arena_;  // activations and workspace
};

}  // namespace headrace::policy
