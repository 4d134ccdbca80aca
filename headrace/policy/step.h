// What a policy takes and gives for one optimizer step: the same for every policy. Plain data.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/model/batch.h"

namespace headrace::policy {

// AdamW's settings that stay the same over a run; the learning rate comes with each step.
struct OptimizerSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  // decoupled; matrices only
  double clip = 0;          // largest global gradient norm; 0: no clipping
  // A step whose loss or gradient is not finite is left out instead of ending the run. No update then begins before the
  // whole gradient is known, as with clipping.
  bool skips_non_finite = false;
};

struct StepInput {
  int64_t step = 0;                             // 0-based, for messages
  std::span<const model::Batch> micro_batches;  // their gradients are summed, weighted by trained tokens
  double learning_rate = 0;
  // The micro-batches of the step after this one, where they are known: its tokens' rows of the embedding go first.
  std::span<const model::Batch> next_micro_batches = {};
};

struct StepResult {
  double loss_sum = 0;         // [nats] over the trained tokens of all micro-batches
  int64_t trained_tokens = 0;  // 0: nothing was updated
  std::string skipped;         // what was not finite where the step was left out: nothing was updated; else empty
  double gradient_norm = 0;    // of the whole mean gradient, before clipping
  float clip_factor = 1;
  double forward_s = 0, backward_s = 0, update_s = 0;  // [s] recomputation counts as backward, the loss as forward
  double stall_s = 0;                                  // [s] compute waited for another lane

  double loss() const { return trained_tokens > 0 ? loss_sum / static_cast<double>(trained_tokens) : 0; }
};

}  // namespace headrace::policy
