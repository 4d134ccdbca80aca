// Causal attention of packed documents, straight from the joint q, k, v product and back to its gradient: no
// transposes, no mask, no padding; a document never reads another's rows. Shapes: N packed tokens, H query heads, K
// key/value heads (H a multiple of K), D head channels, R = D / 2. fp32, CPU. Documents and heads are computed alone:
// the same bits for any thread count and any packing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace headrace::tensor {

struct AttentionShape {
  int64_t num_heads = 0;     // H
  int64_t num_kv_heads = 0;  // K
  int64_t head_dim = 0;      // D
  double scale = 0;          // multiplied into q.k; usually 1 / sqrt(D)
  int64_t window = 0;        // [tokens] a token sees itself and window - 1 before it; 0: all before it
};

// Rotates heads: x_NE is [N, (heads) * D] or a slice of it with row stride; cos_NR and sin_NR hold one row per token.
// Half-split convention (channel r pairs with r + R), as in transformers' llama. Returns a new tensor.
at::Tensor rotary(const at::Tensor& x_NE, const at::Tensor& cos_NR, const at::Tensor& sin_NR, int64_t head_dim);

// qkv_NE: E = (H + 2K) * D, q heads first, then k, then v, as one joint product gives them; cos_NR, sin_NR undefined:
// no rotation (GPT-2, OPT, or rotated already). starts: first row of each document and N at the end, ascending from 0.
// Returns [N, H * D]. Keeps qkv_NE, the output and N * H numbers for backward.
// Throws InternalError when shapes or starts contradict each other.
at::Tensor document_attention(const at::Tensor& qkv_NE, const at::Tensor& cos_NR, const at::Tensor& sin_NR,
                              const std::vector<int64_t>& starts, const AttentionShape& shape);

}  // namespace headrace::tensor
