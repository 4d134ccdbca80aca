// What every policy offers the trainer: steps, the weights they leave, and what they cost. One thread, the trainer's.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/memory/arena.h"
#include "headrace/model/block.h"
#include "headrace/policy/copy_gate.h"
#include "headrace/policy/state.h"
#include "headrace/policy/step.h"

namespace headrace::policy {

// A policy's state as it stands between two steps, on its way into memory.
struct StateCopy {
  Json facts;
  // Each copies a part of a block into the state, once what is under way on it has ended. Called in order, each once,
  // on any one thread, while the policy's thread goes on with the next steps: those wait before they change a part,
  // until it is copied or this is destroyed. Throws what a lane failed with. Destroy it before the policy.
  std::vector<std::function<void(PolicyState& state)>> parts;
  std::shared_ptr<const CopyGate> gate = {};  // that steps wait at
};

class Policy {
 public:
  Policy() = default;
  virtual ~Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  // One optimizer step. Throws RunError naming step, block and tensor when loss or gradient are not finite, and what a
  // lane failed with.
  virtual StepResult step(const StepInput& input) = 0;

  // Returns when the weights of blocks() are those that the next step's forward would see. Throws like step.
  virtual void finish_updates() {}

  // Applies also what a policy holds back for later steps: after the last step. Throws like step.
  virtual void finish_training() { finish_updates(); }

  // Weights by block after finish_updates(), where the compute device has them: for evaluation, generation and export.
  virtual std::span<const model::BlockBuffers> blocks() const = 0;

  // Hugging Face names of the parameters that are updated, in order of blocks.
  virtual const std::vector<std::string>& trained_parameters() const = 0;
  // [elements] of one moment over all blocks.
  virtual int64_t state_numel() const = 0;
  // [bytes] of a saved state's tensors, at most.
  virtual int64_t saved_bytes() const;

  // Where forward passes outside of steps should take their working memory, so that it counts as the steps' does.
  virtual std::shared_ptr<memory::Arena> arena() const = 0;

  // All that training goes on from; one copy at a time. Changes nothing of what later steps compute. Throws like step.
  virtual StateCopy begin_save() = 0;
  // The same into `state`, which is empty, at once.
  void save(PolicyState& state) {
    const StateCopy copy = begin_save();
    for (const auto& copy_part : copy.parts) copy_part(state);
    state.set_facts(copy.facts);
  }
  // Goes on from a state that any policy saved, before the first step; weights given at construction do not matter.
  // The same policy then computes what it would have computed, bit for bit. Throws DataError naming the tensor that is
  // missing or does not fit, ConfigError for what this policy cannot keep (RestoreOptions).
  virtual void restore(const StateReader& saved, const RestoreOptions& options) = 0;

  // Writes the last steps as they ran as a Chrome trace; false when there is nothing to write.
  virtual bool write_trace(std::ostream&) { return false; }

  // What this policy measures at each step besides its result, for the metrics; an object.
  virtual OrderedJson step_metrics() const { return OrderedJson::object(); }

  // Bytes per tier and lane and what was waited for, for a report; an object. After finish_updates().
  virtual OrderedJson report() const { return OrderedJson::object(); }
};

// Masters, both moments and counters.
inline int64_t Policy::saved_bytes() const {
  int64_t numel = 2 * state_numel();
  for (const model::BlockBuffers& block : blocks()) numel += block.weights.numel();
  return numel * static_cast<int64_t>(sizeof(float)) +
         static_cast<int64_t>(trained_parameters().size() * sizeof(int64_t));
}

// The weights of blocks(), in order of blocks.
inline std::vector<at::Tensor> weights_of(const Policy& policy) {
  std::vector<at::Tensor> weights;
  for (const model::BlockBuffers& block : policy.blocks()) weights.push_back(block.weights);
  return weights;
}

}  // namespace headrace::policy
