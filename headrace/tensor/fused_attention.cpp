#include "headrace/tensor/fused_attention.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/kernel/attention.h"
#include "headrace/kernel/rotary.h"
#include "headrace/tensor/aten_ops.h"
#include "headrace/tensor/flash_attention.h"
#include "headrace/tensor/spans.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

void check(const at::Tensor& qkv_NE, std::span<const int64_t> starts, const AttentionShape& shape) {
  bool ascends = starts.size() >= 1 && starts.front() == 0 && starts.back() == qkv_NE.size(0);
  for (size_t d = 0; d + 1 < starts.size(); ++d) ascends = ascends && starts[d] <= starts[d + 1];
  const bool fits = shape.num_kv_heads > 0 && shape.num_heads % shape.num_kv_heads == 0 && shape.window >= 0 &&
                    qkv_NE.size(1) == (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim;
  if (ascends && fits) return;
  throw InternalError("tensor.attention",
                      std::to_string(qkv_NE.size(0)) + " rows of " + std::to_string(qkv_NE.size(1)) + " channels for " +
                          std::to_string(shape.num_heads) + " heads over " + std::to_string(shape.num_kv_heads) +
                          " of " + std::to_string(shape.head_dim) + " channels in " + std::to_string(starts.size()) +
                          " document bounds.");
}

// The documents of a batch by who computes them.
struct Documents {
  std::vector<std::pair<int64_t, int64_t>> ours, flash;  // first row, tokens

  Documents(std::span<const int64_t> starts, const AttentionShape& shape) {
    for (size_t d = 0; d + 1 < starts.size(); ++d) {
      const int64_t tokens = starts[d + 1] - starts[d];
      (is_flash_document(tokens, shape) ? flash : ours).emplace_back(starts[d], tokens);
    }
  }
};

// One head of one document, numbered so that a worker finds long documents spread over the whole range.
struct Task {
  size_t first, tokens;  // rows of the document
  size_t head, kv_head;
};

Task task_at(size_t index, const Documents& documents, const AttentionShape& shape) {
  const size_t head = index / documents.ours.size();
  const auto [first, tokens] = documents.ours[index % documents.ours.size()];
  return {static_cast<size_t>(first), static_cast<size_t>(tokens), head,
          head / static_cast<size_t>(shape.num_heads / shape.num_kv_heads)};
}

kernel::AttentionHead head_of(const Task& task, const float* qkv, const AttentionShape& shape) {
  const auto heads = static_cast<size_t>(shape.num_heads), kv_heads = static_cast<size_t>(shape.num_kv_heads);
  const auto channels = static_cast<size_t>(shape.head_dim);
  const size_t stride = (heads + 2 * kv_heads) * channels;
  const float* row = qkv + task.first * stride;
  return {.q = row + task.head * channels,
          .k = row + (heads + task.kv_head) * channels,
          .v = row + (heads + kv_heads + task.kv_head) * channels,
          .stride = stride,
          .tokens = task.tokens,
          .channels = channels,
          .scale = static_cast<float>(shape.scale),
          .window = static_cast<size_t>(shape.window)};
}

// One row of scratch for each thread, long enough for the longest document of ours.
at::Tensor make_scratch(const at::Tensor& qkv_NE, const Documents& documents, const AttentionShape& shape) {
  int64_t longest = 0;
  for (const auto& [first, tokens] : documents.ours) longest = std::max(longest, tokens);
  const size_t floats = kernel::attention_scratch(static_cast<size_t>(longest), static_cast<size_t>(shape.head_dim));
  return at::empty({at::get_num_threads(), static_cast<int64_t>(floats)}, qkv_NE.options());
}

// Key and value gradients of each query head [N, H * D] summed into those of their key/value head, in head order.
void sum_groups(const at::Tensor& by_query_head, at::Tensor to_NK, const AttentionShape& shape) {
  const int64_t rows = by_query_head.size(0), group = shape.num_heads / shape.num_kv_heads;
  const at::Tensor grouped = by_query_head.view({rows, shape.num_kv_heads, group, shape.head_dim});
  at::Tensor to = to_NK.view({rows, shape.num_kv_heads, shape.head_dim});
  to.copy_(grouped.select(2, 0));
  for (int64_t member = 1; member < group; ++member) to.add_(grouped.select(2, member));
}

}  // namespace

void rotary_(at::Tensor& qkv_NE, const at::Tensor& cos_NR, const at::Tensor& sin_NR, const AttentionShape& shape,
             bool backward) {
  if (!is_ours(qkv_NE)) return aten::rotary_(qkv_NE, cos_NR, sin_NR, shape, backward);
  const auto qkv = floats(qkv_NE);
  const auto cos = const_floats(cos_NR), sin = const_floats(sin_NR);
  const auto rows = static_cast<size_t>(qkv_NE.size(0)), stride = static_cast<size_t>(qkv_NE.size(1));
  const auto half = static_cast<size_t>(shape.head_dim / 2);
  const auto rotated = static_cast<size_t>(shape.num_heads + shape.num_kv_heads);
  over_range(rows, 16, [&](size_t begin, size_t end) {
    kernel::rotate({qkv.data() + begin * stride, end - begin, stride, rotated}, half,
                   cos.subspan(begin * half, (end - begin) * half), sin.subspan(begin * half, (end - begin) * half),
                   backward);
  });
}

Attention attention(const at::Tensor& qkv_NE, std::span<const int64_t> starts, const AttentionShape& shape) {
  check(qkv_NE, starts, shape);
  if (!is_ours(qkv_NE)) return aten::attention(qkv_NE, starts, shape);
  const int64_t rows = qkv_NE.size(0);
  Attention result{at::empty({rows, shape.num_heads * shape.head_dim}, qkv_NE.options()),
                   at::empty({shape.num_heads, rows}, qkv_NE.options())};
  const float* qkv = const_floats(qkv_NE).data();
  const auto y = floats(result.y_NO), lse = floats(result.lse_HN);
  const auto y_stride = static_cast<size_t>(result.y_NO.size(1)), channels = static_cast<size_t>(shape.head_dim);
  const Documents documents(starts, shape);
  const at::Tensor scratch = make_scratch(qkv_NE, documents, shape);
  const auto scratch_size = static_cast<size_t>(scratch.size(1));
  over_tasks(documents.ours.size() * static_cast<size_t>(shape.num_heads), [&](size_t index, size_t worker) {
    const Task task = task_at(index, documents, shape);
    kernel::attention_head(head_of(task, qkv, shape), y.data() + task.first * y_stride + task.head * channels, y_stride,
                           lse.subspan(task.head * static_cast<size_t>(rows) + task.first, task.tokens),
                           floats(scratch).subspan(worker * scratch_size, scratch_size));
  });
  for (const auto& [first, tokens] : documents.flash) flash_document(qkv_NE, first, tokens, shape, result);
  return result;
}

at::Tensor attention_backward(const at::Tensor& grad_y_NO, const at::Tensor& qkv_NE, const Attention& saved,
                              std::span<const int64_t> starts, const AttentionShape& shape) {
  check(qkv_NE, starts, shape);
  if (!is_ours(qkv_NE)) return aten::attention_backward(grad_y_NO, qkv_NE, saved, starts, shape);
  const auto rows = static_cast<size_t>(qkv_NE.size(0)), channels = static_cast<size_t>(shape.head_dim);
  const int64_t queries = shape.num_heads * shape.head_dim, keys = shape.num_kv_heads * shape.head_dim;
  const Documents documents(starts, shape);
  const bool is_grouped = shape.num_heads != shape.num_kv_heads && !documents.ours.empty();
  at::Tensor grad = at::empty_like(qkv_NE);
  // With grouped heads each query head writes its own share of the key and value gradients first.
  const at::Tensor shares = is_grouped ? at::empty({2, qkv_NE.size(0), queries}, qkv_NE.options()) : at::Tensor();
  float* const grad_q = floats(grad).data();
  float* const grad_k = is_grouped ? floats(shares).data() : grad_q + queries;
  float* const grad_v = is_grouped ? grad_k + shares.stride(0) : grad_k + keys;
  const auto q_stride = static_cast<size_t>(qkv_NE.size(1)), y_stride = static_cast<size_t>(queries);
  const size_t kv_stride = is_grouped ? y_stride : q_stride;
  const float* qkv = const_floats(qkv_NE).data();
  const float* y = const_floats(saved.y_NO).data();
  const float* grad_y = const_floats(grad_y_NO).data();
  const auto lse = const_floats(saved.lse_HN);
  const at::Tensor scratch = make_scratch(qkv_NE, documents, shape);
  const auto scratch_size = static_cast<size_t>(scratch.size(1));
  over_tasks(documents.ours.size() * static_cast<size_t>(shape.num_heads), [&](size_t index, size_t worker) {
    const Task task = task_at(index, documents, shape);
    const size_t q_at = task.first * q_stride + task.head * channels,
                 y_at = task.first * y_stride + task.head * channels;
    const size_t kv_at = task.first * kv_stride + task.head * channels;
    kernel::attention_head_backward(head_of(task, qkv, shape), lse.subspan(task.head * rows + task.first, task.tokens),
                                    {.y = y + y_at,
                                     .grad_y = grad_y + y_at,
                                     .y_stride = y_stride,
                                     .grad_q = grad_q + q_at,
                                     .q_stride = q_stride,
                                     .grad_k = grad_k + kv_at,
                                     .grad_v = grad_v + kv_at,
                                     .kv_stride = kv_stride},
                                    floats(scratch).subspan(worker * scratch_size, scratch_size));
  });
  if (is_grouped) {
    sum_groups(shares[0], grad.narrow(1, queries, keys), shape);
    sum_groups(shares[1], grad.narrow(1, queries + keys, keys), shape);
  }
  for (const auto& [first, tokens] : documents.flash) {
    flash_document_backward(grad_y_NO, qkv_NE, saved, first, tokens, shape, grad);
  }
  return grad;
}

}  // namespace headrace::tensor
