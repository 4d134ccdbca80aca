// Legend: N packed tokens, T tokens of a document, H query heads, K key heads, G = H / K that share a key head, D
// channels of a head, R = D / 2.
#include <algorithm>

#include "headrace/tensor/aten_ops.h"
#include "headrace/tensor/aten_types.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor::aten {
namespace {

// Queries, keys and values of one key head in one document, in the wide type.
struct Group {
  at::Tensor q_GTD, k_TD, v_TD;
};

// The rows of a document and the channels of `count` heads from head `first` on: [count, T, D].
at::Tensor heads_of(const at::Tensor& x_NE, int64_t begin, int64_t tokens, int64_t first, int64_t count,
                    int64_t head_dim) {
  const at::Tensor rows = x_NE.narrow(0, begin, tokens).narrow(1, first * head_dim, count * head_dim);
  return rows.unflatten(1, {count, head_dim}).transpose(0, 1);
}

class Document {
 public:
  Document(int64_t begin, int64_t tokens, const AttentionShape& shape, const at::Tensor& like)
      : begin_(begin), tokens_(tokens), group_(shape.num_heads / shape.num_kv_heads), shape_(shape) {
    const at::Tensor ones = at::ones({tokens, tokens}, like.options().dtype(at::kBool));
    hidden_TT_ = ones.triu(1);
    if (shape.window > 0) hidden_TT_ = hidden_TT_.logical_or(ones.tril(-shape.window));
  }

  // View of the group's query heads, or of key head `key` (kind 0) and value head (kind 1).
  at::Tensor queries(const at::Tensor& x_NE, int64_t key) const {
    return heads_of(x_NE, begin_, tokens_, key * group_, group_, shape_.head_dim);
  }
  at::Tensor keys(const at::Tensor& qkv_NE, int64_t key) const { return one_head(qkv_NE, shape_.num_heads + key); }
  at::Tensor values(const at::Tensor& qkv_NE, int64_t key) const {
    return one_head(qkv_NE, shape_.num_heads + shape_.num_kv_heads + key);
  }
  // [G, T] of an [H, N].
  at::Tensor of_rows(const at::Tensor& lse_HN, int64_t key) const {
    return lse_HN.narrow(0, key * group_, group_).narrow(1, begin_, tokens_);
  }
  Group group(const at::Tensor& qkv_NE, int64_t key) const {
    return {wide(queries(qkv_NE, key)), wide(keys(qkv_NE, key)), wide(values(qkv_NE, key))};
  }
  at::Tensor scores_GTT(const Group& group) const {
    const at::Tensor scores = at::matmul(group.q_GTD, group.k_TD.t()).mul_(shape_.scale);
    return scores.masked_fill(hidden_TT_, -std::numeric_limits<double>::infinity());
  }

 private:
  at::Tensor one_head(const at::Tensor& qkv_NE, int64_t head) const {
    return heads_of(qkv_NE, begin_, tokens_, head, 1, shape_.head_dim).squeeze(0);
  }

  const int64_t begin_, tokens_, group_;
  const AttentionShape& shape_;
  at::Tensor hidden_TT_;
};

void attend(const Document& document, const at::Tensor& qkv_NE, int64_t key, Attention& result) {
  const Group group = document.group(qkv_NE, key);
  const at::Tensor scores = document.scores_GTT(group), lse_GT = at::logsumexp(scores, {2});
  document.of_rows(result.lse_HN, key).copy_(lse_GT);
  document.queries(result.y_NO, key).copy_(at::matmul((scores - lse_GT.unsqueeze(2)).exp(), group.v_TD));
}

void attend_backward(const Document& document, const at::Tensor& grad_y_NO, const at::Tensor& qkv_NE,
                     const Attention& saved, int64_t key, double scale, const at::Tensor& grad_NE) {
  const Group group = document.group(qkv_NE, key);
  const at::Tensor grad_y = wide(document.queries(grad_y_NO, key)), y = wide(document.queries(saved.y_NO, key));
  const at::Tensor lse = document.of_rows(saved.lse_HN, key).unsqueeze(2);
  const at::Tensor weights = (document.scores_GTT(group) - lse).exp();
  const at::Tensor towards = (grad_y * y).sum(2, /*keepdim=*/true);
  const at::Tensor grad_scores = weights.mul(at::matmul(grad_y, group.v_TD.t()).sub_(towards)).mul_(scale);
  document.queries(grad_NE, key).copy_(at::matmul(grad_scores, group.k_TD));
  document.keys(grad_NE, key).copy_(at::matmul(grad_scores.transpose(1, 2), group.q_GTD).sum(0));
  document.values(grad_NE, key).copy_(at::matmul(weights.transpose(1, 2), grad_y).sum(0));
}

// Calls body(document) for each that has rows.
template <class Body>
void for_each_document(std::span<const int64_t> starts, const AttentionShape& shape, const at::Tensor& like,
                       const Body& body) {
  for (size_t d = 0; d + 1 < starts.size(); ++d) {
    if (starts[d + 1] > starts[d]) body(Document(starts[d], starts[d + 1] - starts[d], shape, like));
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
  const auto wide_type = qkv_NE.element_size() < 4 ? at::kFloat : qkv_NE.scalar_type();
  Attention result{at::empty({rows, shape.num_heads * shape.head_dim}, qkv_NE.options()),
                   at::empty({shape.num_heads, rows}, qkv_NE.options().dtype(wide_type))};
  for_each_document(starts, shape, qkv_NE, [&](const Document& document) {
    for (int64_t key = 0; key < shape.num_kv_heads; ++key) attend(document, qkv_NE, key, result);
  });
  return result;
}

at::Tensor attention_backward(const at::Tensor& grad_y_NO, const at::Tensor& qkv_NE, const Attention& saved,
                              std::span<const int64_t> starts, const AttentionShape& shape) {
  const at::Tensor grad_NE = at::empty_like(qkv_NE);
  for_each_document(starts, shape, qkv_NE, [&](const Document& document) {
    for (int64_t key = 0; key < shape.num_kv_heads; ++key) {
      attend_backward(document, grad_y_NO, qkv_NE, saved, key, shape.scale, grad_NE);
    }
  });
  return grad_NE;
}

}  // namespace headrace::tensor::aten
