// Where a NaN or an infinity comes from, for the message that ends a run. Slow; only called when one was seen.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/model/block.h"

namespace headrace::policy {

// "block layer.3, weight model.layers.3.mlp.up_proj.weight, element 17: nan" or likewise of an output or a gradient:
// weights are looked at first, then block outputs in forward order (run again), then gradients in backward order.
std::string locate_non_finite(const model::Model& model, std::span<const model::BlockBuffers> blocks,
                              std::span<const model::Batch> micro_batches);

struct StepNumbers {
  int64_t step;  // 0-based
  double loss;
  double gradient_norm;
};

// Of the whole gradient; summed in order of the blocks.
double norm_of_parts(std::span<const double> squared_norms);

// What ends the run of a policy that gives up as soon as a block's squared norm (by block; those not reached are 0) is
// not finite: other blocks' gradient buffers may hold another block's and are not looked at.
RunError non_finite_error(const model::Model& model, std::vector<model::BlockBuffers> blocks,
                          std::span<const double> squared_norms, std::span<const model::Batch> micro_batches,
                          const StepNumbers& numbers, bool is_untouched);

bool is_finite(double loss_sum, std::span<const double> squared_norms);

// "loss nan; gradients of 12 of 32 blocks, in backward first layer.11": of a step that is left out.
std::string skipped_text(const model::Model& model, double loss, std::span<const double> squared_norms);

// The sentence that ends the run. `is_untouched`: no weight and no moment was updated in this step.
std::string non_finite_text(const StepNumbers& numbers, const std::string& place, bool is_untouched);

}  // namespace headrace::policy
