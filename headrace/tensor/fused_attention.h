// Causal attention of packed documents, straight from the joint q, k, v product and back to its gradient: no
// transposes, no mask, no padding; a document never reads another's rows. Shapes: N packed tokens, H query heads, K
// key/value heads (H a multiple of K), D head channels, R = D / 2. fp32 on the CPU: documents and heads are computed
// alone, the same bits for any thread count and any packing. Other devices and types: libtorch's operators
// (aten_ops.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace headrace::tensor {

struct AttentionShape {
  int64_t num_heads = 0;     // H
  int64_t num_kv_heads = 0;  // K
  int64_t head_dim = 0;      // D
  double scale = 0;          // multiplied into q.k; usually 1 / sqrt(D)
  int64_t window = 0;        // [tokens] a token sees itself and window - 1 before it; 0: all before it
};

// Rotates q and k of qkv_NE in place; v stays. cos_NR, sin_NR: one row per token. Half-split convention (channel r
// pairs with r + R), as in transformers' llama. `backward` turns the other way.
void rotary_(at::Tensor& qkv_NE, const at::Tensor& cos_NR, const at::Tensor& sin_NR, const AttentionShape& shape,
             bool backward = false);

struct Attention {
  at::Tensor y_NO;    // O = H * D
  at::Tensor lse_HN;  // log of the sum of exponentials of each row's scores
};

// qkv_NE: E = (H + 2K) * D, q heads first, then k, then v, as one joint product gives them, already rotated.
// starts: first row of each document and N at the end, ascending from 0.
// Throws InternalError when shapes or starts contradict each other.
Attention attention(const at::Tensor& qkv_NE, std::span<const int64_t> starts, const AttentionShape& shape);

// Gradient of qkv_NE (still rotated).
at::Tensor attention_backward(const at::Tensor& grad_y_NO, const at::Tensor& qkv_NE, const Attention& saved,
                              std::span<const int64_t> starts, const AttentionShape& shape);

}  // namespace headrace::tensor
