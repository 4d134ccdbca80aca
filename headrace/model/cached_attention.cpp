#include "headrace/model/cached_attention.h"

#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

// [1, heads, T, D] of [T, heads * D].
at::Tensor heads_of(const at::Tensor& x_TE, int64_t head_dim) {
  return x_TE.unflatten(1, {x_TE.size(1) / head_dim, head_dim}).transpose(0, 1).unsqueeze(0);
}

// The keys that each new token sees: those before it and itself, the last `window` of them.
at::Tensor mask_of(int64_t num_new, int64_t num_keys, int64_t window, const at::Tensor& like) {
  const auto options = like.options().dtype(at::kLong);
  const at::Tensor query_T1 = at::arange(num_keys - num_new, num_keys, options).unsqueeze(1);
  const at::Tensor key_1S = at::arange(num_keys, options).unsqueeze(0);
  const at::Tensor is_before = key_1S <= query_T1;
  return window > 0 ? is_before & (key_1S > query_T1 - window) : is_before;
}

}  // namespace

at::Tensor cached_attention(const at::Tensor& q_TO, const at::Tensor& k_SE, const at::Tensor& v_SE,
                            const tensor::AttentionShape& shape) {
  const at::Tensor q = heads_of(q_TO, shape.head_dim), k = heads_of(k_SE, shape.head_dim),
                   v = heads_of(v_SE, shape.head_dim);
  const int64_t num_new = q_TO.size(0), num_keys = k_SE.size(0);
  const bool is_cut = shape.window > 0 && num_keys > shape.window;
  std::optional<at::Tensor> mask;
  if (is_cut || (num_new > 1 && num_new < num_keys)) mask = mask_of(num_new, num_keys, shape.window, q);
  const bool is_whole = !mask && num_new > 1;
  const at::Tensor mixed = at::scaled_dot_product_attention(q, k, v, mask, 0.0, is_whole, shape.scale,
                                                            /*enable_gqa=*/shape.num_heads != shape.num_kv_heads);
  return mixed.squeeze(0).transpose(0, 1).flatten(1);
}

}  // namespace headrace::model
