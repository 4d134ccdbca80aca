// The resident policy: weights, gradients and moments of every block stay on the compute device. The reference that
// every other policy is compared with, bit for bit. One thread; libtorch's intra-op threads work inside the calls.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/memory/arena.h"
#include "headrace/optim/adamw.h"
#include "headrace/policy/copy_gate.h"
#include "headrace/policy/exact_state.h"
#include "headrace/policy/policy.h"
#include "headrace/policy/trained_blocks.h"

namespace headrace::policy {

class Resident final : public Policy {
 public:
  struct Settings {
    OptimizerSettings optimizer;
    bool recompute = false;                                     // keep only block inputs between forward and backward
    std::function<bool(std::string_view name)> is_frozen = {};  // parameters that stay as they are; empty: none
  };

  // `weights`: one flat fp32 host buffer a block, taken over and updated in place, or copied to a device with memory of
  // its own. `model` must outlive the policy. Without a device it is the CPU.
  Resident(const model::Model& model, std::vector<at::Tensor> weights, Settings settings,
           std::unique_ptr<device::Device> device = nullptr);

  // After a RunError, and after a skipped step, weights and moments are those of before the step.
  StepResult step(const StepInput& input) override;

  // With gradients: those of the last step.
  std::span<const model::BlockBuffers> blocks() const override { return blocks_; }
  const std::vector<std::string>& trained_parameters() const override { return trained_.parameters; }
  int64_t state_numel() const override { return trained_.state_numel; }
  std::shared_ptr<memory::Arena> arena() const override { return arena_; }
  StateCopy begin_save() override;
  void restore(const StateReader& saved, const RestoreOptions& options) override;

 private:
  // Forward and backward of all blocks but the embedding's backward; returns the gradient of the embedding's output.
  at::Tensor accumulate(const model::Batch& batch, float grad_scale, StepResult& result);
  void accumulate_embedding(std::span<const model::Batch> batches, std::vector<at::Tensor> gradients);
  std::vector<double> squared_norms() const;  // by block
  ExactBlock exact_block(size_t block);
  void update(double learning_rate, float clip_factor);

  const model::Model& model_;
  const Settings settings_;
  const std::unique_ptr<device::Device> device_;
  const TrainedBlocks trained_;
  std::vector<model::BlockBuffers> blocks_;
  std::vector<optim::AdamWState> states_;  // by block
  const std::shared_ptr<CopyGate> copy_gate_;
  const std::shared_ptr<memory::Arena> arena_;  // activations and workspace; null on a GPU
};

}  // namespace headrace::policy
