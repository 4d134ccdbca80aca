// Random initialisation as transformers does it per family: normal matrices, zero biases, norms of one.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "headrace/model/spec.h"

namespace headrace::model {

// Fills a block's flat fp32 CPU buffer; gaps become zero. Each parameter draws from its own stream (seed and name), so
// neither the order of blocks nor the number of threads matters.
void initialize(const BlockSpec& block, uint64_t seed, at::Tensor flat_weights);

}  // namespace headrace::model
