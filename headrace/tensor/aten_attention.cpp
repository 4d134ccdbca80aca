// Legend: N packed tokens, T tokens of a document, H query heads, K key heads, G = H / K that share a key head, D
// channels of a head, R = D / 2, B key heads taken at a time, Q = G * T.
#include <algorithm>
#include <limits>

#include "headrace/tensor/aten_ops.h"
#include "headrace/tensor/aten_types.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor::aten {
namespace {

constexpr int64_t kScoreBytes = 256 << 20;  // of one tensor of scores, where one key head's are not larger

// Some key heads of a document, and the query heads that share them.
class Heads {
 public:
  struct Rows {
    int64_t begin, count;  // of the document
  };
  Heads(Rows rows, int64_t first_key, int64_t num_keys, const AttentionShape& shape)
      : rows_(rows), first_(first_key), count_(num_keys), group_(shape.num_heads / shape.num_kv_heads), shape_(shape) {}

  // Views [B, G, T, D], [B, T, D] and [B, T, D] of rows that hold queries, keys and values.
  at::Tensor queries(const at::Tensor& x_NE) const {
    return channels(x_NE, first_ * group_, count_ * group_).unflatten(1, {count_, group_}).permute({1, 2, 0, 3});
  }
  at::Tensor keys(const at::Tensor& qkv_NE) const {
    return channels(qkv_NE, shape_.num_heads + first_, count_).transpose(0, 1);
  }
  at::Tensor values(const at::Tensor& qkv_NE) const {
    return channels(qkv_NE, shape_.num_heads + shape_.num_kv_heads + first_, count_).transpose(0, 1);
  }
  // View [B, G, T] of an [H, N].
  at::Tensor of_rows(const at::Tensor& lse_HN) const {
    return lse_HN.narrow(0, first_ * group_, count_ * group_)
        .narrow(1, rows_.begin, rows_.count)
        .unflatten(0, {count_, group_});
  }

  // [B, Q, D] of [B, G, T, D], and back.
  static at::Tensor joined(const at::Tensor& x_BGTD) { return wide(x_BGTD).flatten(1, 2); }
  at::Tensor parted(const at::Tensor& x_BQD) const { return x_BQD.unflatten(1, {group_, rows_.count}); }

  // [B, G, T, T], minus infinity where a token does not see another.
  at::Tensor scores(const at::Tensor& q_BQD, const at::Tensor& k_BTD) const {
    const at::Tensor scores = parted(at::bmm(q_BQD, k_BTD.transpose(1, 2)).mul_(shape_.scale));
    const at::Tensor all = at::ones({rows_.count, rows_.count}, q_BQD.options().dtype(at::kBool));
    at::Tensor hidden = all.triu(1);
    if (shape_.window > 0) hidden = hidden.logical_or(all.tril(-shape_.window));
    return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }

 private:
  // [T, heads, D]
  at::Tensor channels(const at::Tensor& x_NE, int64_t first_head, int64_t num_heads) const {
    return x_NE.narrow(0, rows_.begin, rows_.count)
        .narrow(1, first_head * shape_.head_dim, num_heads * shape_.head_dim)
        .unflatten(1, {num_heads, shape_.head_dim});
  }

  const Rows rows_;
  const int64_t first_, count_, group_;
  const AttentionShape& shape_;
};

void attend(const Heads& heads, const at::Tensor& qkv_NE, Attention& result) {
  const at::Tensor scores = heads.scores(Heads::joined(heads.queries(qkv_NE)), wide(heads.keys(qkv_NE)));
  const at::Tensor lse_BGT = at::logsumexp(scores, {3});
  const at::Tensor weights = (scores - lse_BGT.unsqueeze(3)).exp_();
  heads.of_rows(result.lse_HN).copy_(lse_BGT);
  heads.queries(result.y_NO).copy_(heads.parted(at::bmm(Heads::joined(weights), wide(heads.values(qkv_NE)))));
}

void attend_backward(const Heads& heads, const at::Tensor& grad_y_NO, const at::Tensor& qkv_NE, const Attention& saved,
                     double scale, const at::Tensor& grad_NE) {
  const at::Tensor q = Heads::joined(heads.queries(qkv_NE)), k = wide(heads.keys(qkv_NE));
  const at::Tensor grad_y = Heads::joined(heads.queries(grad_y_NO)), y = Heads::joined(heads.queries(saved.y_NO));
  const at::Tensor lse = heads.of_rows(saved.lse_HN).unsqueeze(3);
  const at::Tensor weights = Heads::joined((heads.scores(q, k) - lse).exp_());
  const at::Tensor towards = (grad_y * y).sum(2, /*keepdim=*/true);
  at::Tensor grad_scores = at::bmm(grad_y, wide(heads.values(qkv_NE)).transpose(1, 2));
  grad_scores = grad_scores.sub_(towards).mul_(weights).mul_(scale);
  heads.queries(grad_NE).copy_(heads.parted(at::bmm(grad_scores, k)));
  heads.keys(grad_NE).copy_(at::bmm(grad_scores.transpose(1, 2), q));
  heads.values(grad_NE).copy_(at::bmm(weights.transpose(1, 2), grad_y));
}

// Calls body(heads) for all heads of all documents.
template <class Body>
void for_all_heads(std::span<const int64_t> starts, const AttentionShape& shape, const Body& body) {
  for (size_t d = 0; d + 1 < starts.size(); ++d) {
    const int64_t tokens = starts[d + 1] - starts[d];
    if (tokens == 0) continue;
    const int64_t bytes = shape.num_heads / shape.num_kv_heads * tokens * tokens * int64_t{sizeof(float)};
    const int64_t most = std::clamp<int64_t>(kScoreBytes / bytes, 1, shape.num_kv_heads);
    for (int64_t key = 0; key < shape.num_kv_heads; key += most) {
      body(Heads({starts[d], tokens}, key, std::min(most, shape.num_kv_heads - key), shape));
    }
  }
}

}  // namespace

void rotary_(at::Tensor& qkv_NE, const at::Tensor& cos_NR, const at::Tensor& sin_NR, const AttentionShape& shape,
             bool backward) {
  const int64_t rotated = shape.num_heads + shape.num_kv_heads, half = shape.head_dim / 2;
  const at::Tensor heads = qkv_NE.narrow(1, 0, rotated * shape.head_dim).unflatten(1, {rotated, 2, half});
  const at::Tensor first = wide(heads.select(2, 0)), second = wide(heads.select(2, 1));
  const at::Tensor cos = cos_NR.to(first.scalar_type()).unsqueeze(1);
  const at::Tensor sin = (backward ? -sin_NR : sin_NR).to(first.scalar_type()).unsqueeze(1);
  const at::Tensor new_first = first * cos - second * sin, new_second = second * cos + first * sin;
  heads.select(2, 0).copy_(new_first);
  heads.select(2, 1).copy_(new_second);
}

Attention attention(const at::Tensor& qkv_NE, std::span<const int64_t> starts, const AttentionShape& shape) {
  const int64_t rows = qkv_NE.size(0);
  Attention result{at::empty({rows, shape.num_heads * shape.head_dim}, qkv_NE.options()),
                   at::empty({shape.num_heads, rows}, qkv_NE.options().dtype(wide_type(qkv_NE)))};
  for_all_heads(starts, shape, [&](const Heads& heads) { attend(heads, qkv_NE, result); });
  return result;
}

at::Tensor attention_backward(const at::Tensor& grad_y_NO, const at::Tensor& qkv_NE, const Attention& saved,
                              std::span<const int64_t> starts, const AttentionShape& shape) {
  const at::Tensor grad_NE = at::empty_like(qkv_NE);
  for_all_heads(starts, shape,
                [&](const Heads& heads) { attend_backward(heads, grad_y_NO, qkv_NE, saved, shape.scale, grad_NE); });
  return grad_NE;
}

}  // namespace headrace::tensor::aten
