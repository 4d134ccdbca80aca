// Attention of new tokens over a cache, for generation. Legend: T new tokens, S tokens in the cache, the new ones last.
#pragma once

#include <ATen/core/Tensor.h>

#include "headrace/tensor/fused_attention.h"

namespace headrace::model {

// q_TO [T, H * D], k_SE and v_SE [S, K * D], rotated. Returns [T, H * D]. Memory grows with T * S unless T is 1 or S.
at::Tensor cached_attention(const at::Tensor& q_TO, const at::Tensor& k_SE, const at::Tensor& v_SE,
                            const tensor::AttentionShape& shape);

}  // namespace headrace::model
