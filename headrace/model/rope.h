// Rotary embedding: the angles of each token. Su et al., arXiv 2104.09864; scaling as transformers defines it.
// Legend: N tokens, R = head_dim / 2.
#pragma once

#include <torch/types.h>

#include <utility>

#include "headrace/config/model_shape.h"

namespace headrace::model {

// [R] fp32 inverse frequencies, computed in the same fp32 operations as transformers. CPU.
at::Tensor inverse_frequencies(const config::Rope& rope, int64_t head_dim);

// {cos, sin}, each [N, R] fp32 on the device of the positions; both undefined for a model without rotation.
std::pair<at::Tensor, at::Tensor> rotary_tables(const config::ModelShape& shape, const at::Tensor& positions_N);

}  // namespace headrace::model
