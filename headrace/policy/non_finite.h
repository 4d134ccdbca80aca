// Where a NaN or an infinity comes from, for the message that ends a run. Slow; only called when one was seen.
#pragma once

#include <span>
#include <string>

#include "headrace/model/block.h"

namespace headrace::policy {

// "block layer.3, weight model.layers.3.mlp.up_proj.weight, element 17: nan" or likewise of an output or a gradient:
// weights are looked at first, then block outputs in forward order (run again), then gradients in backward order.
std::string locate_non_finite(const model::Model& model, std::span<const model::BlockBuffers> blocks,
                              std::span<const model::Batch> micro_batches);

}  // namespace headrace::policy
