#include "headrace/tensor/flash_attention.h"

#include <optional>
#include <tuple>

#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

constexpr int64_t kFewestTokens = 150;  // bench/micro/kernel_bench: below, our kernel wins or ties

// The document's query, key and value as libtorch wants them, [1, H, T, D]. Keys and values are repeated for the query
// heads that share them.
struct Heads {
  at::Tensor query, key, value;
};

Heads heads_of(const at::Tensor& qkv_NE, int64_t first, int64_t tokens, const AttentionShape& shape) {
  const at::Tensor rows = qkv_NE.narrow(0, first, tokens);
  const int64_t queries = shape.num_heads * shape.head_dim, keys = shape.num_kv_heads * shape.head_dim;
  const int64_t group = shape.num_heads / shape.num_kv_heads;
  const auto heads = [&](int64_t at, int64_t count) {
    return rows.narrow(1, at, count * shape.head_dim).unflatten(1, {count, shape.head_dim});
  };
  const auto repeated = [&](int64_t at) {
    const at::Tensor each = heads(at, shape.num_kv_heads);
    return (group == 1 ? each : each.repeat_interleave(group, 1)).transpose(0, 1).unsqueeze(0);
  };
  return {heads(0, shape.num_heads).transpose(0, 1).unsqueeze(0), repeated(queries), repeated(queries + keys)};
}

// The document's rows of a [N, H * D] tensor as [1, H, T, D].
at::Tensor by_head(const at::Tensor& x_NO, int64_t first, int64_t tokens, const AttentionShape& shape) {
  return x_NO.narrow(0, first, tokens).unflatten(1, {shape.num_heads, shape.head_dim}).transpose(0, 1).unsqueeze(0);
}

}  // namespace

bool is_flash_document(int64_t tokens, const AttentionShape& shape) {
  return tokens >= kFewestTokens && (shape.window == 0 || shape.window >= tokens);
}

void flash_document(const at::Tensor& qkv_NE, int64_t first, int64_t tokens, const AttentionShape& shape,
                    Attention& result) {
  const at::NoGradGuard no_grad;
  const Heads heads = heads_of(qkv_NE, first, tokens, shape);
  const auto [y, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
      heads.query, heads.key, heads.value, /*dropout_p=*/0.0, /*is_causal=*/true, std::nullopt, shape.scale);
  by_head(result.y_NO, first, tokens, shape).copy_(y);
  result.lse_HN.narrow(1, first, tokens).copy_(lse.squeeze(0));
}

void flash_document_backward(const at::Tensor& grad_y_NO, const at::Tensor& qkv_NE, const Attention& saved,
                             int64_t first, int64_t tokens, const AttentionShape& shape, at::Tensor& grad_qkv_NE) {
  const at::NoGradGuard no_grad;
  const Heads heads = heads_of(qkv_NE, first, tokens, shape);
  const auto [grad_query, grad_key, grad_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      by_head(grad_y_NO, first, tokens, shape), heads.query, heads.key, heads.value,
      by_head(saved.y_NO, first, tokens, shape), saved.lse_HN.narrow(1, first, tokens).unsqueeze(0), /*dropout_p=*/0.0,
      /*is_causal=*/true, std::nullopt, shape.scale);
  const int64_t queries = shape.num_heads * shape.head_dim, keys = shape.num_kv_heads * shape.head_dim;
  const int64_t group = shape.num_heads / shape.num_kv_heads;
  at::Tensor rows = grad_qkv_NE.narrow(0, first, tokens);
  const auto store = [&](int64_t at, int64_t count, const at::Tensor& grad_HTD) {
    rows.narrow(1, at, count * shape.head_dim).unflatten(1, {count, shape.head_dim}).transpose(0, 1).copy_(grad_HTD);
  };
  const auto summed = [&](const at::Tensor& grad) {
    return group == 1 ? grad.squeeze(0) : grad.squeeze(0).unflatten(0, {shape.num_kv_heads, group}).sum(1);
  };
  store(0, shape.num_heads, grad_query.squeeze(0));
  store(queries, shape.num_kv_heads, summed(grad_key));
  store(queries + keys, shape.num_kv_heads, summed(grad_value));
}

}  // namespace headrace::tensor
