#include "headrace/tensor/fused_attention.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

using Starts = std::vector<int64_t>;

AttentionShape shape_of(int64_t heads, int64_t kv_heads, int64_t channels, int64_t window = 0) {
  return {heads, kv_heads, channels, 1 / std::sqrt(static_cast<double>(channels)), window};
}

at::Tensor random_qkv(int64_t rows, const AttentionShape& s) {
  return at::randn({rows, (s.num_heads + 2 * s.num_kv_heads) * s.head_dim});
}

// libtorch's attention, document by document, with an explicit mask.
at::Tensor by_libtorch(const at::Tensor& qkv, const Starts& starts, const AttentionShape& s) {
  std::vector<at::Tensor> outputs;
  for (size_t d = 0; d + 1 < starts.size(); ++d) {
    const int64_t tokens = starts[d + 1] - starts[d], queries = s.num_heads * s.head_dim;
    const int64_t keys = s.num_kv_heads * s.head_dim, group = s.num_heads / s.num_kv_heads;
    const at::Tensor rows = qkv.narrow(0, starts[d], tokens);
    const auto heads = [&](int64_t from, int64_t width, int64_t repeat) {
      return rows.narrow(1, from, width).reshape({tokens, -1, s.head_dim}).transpose(0, 1).repeat_interleave(repeat, 0);
    };
    at::Tensor mask = at::ones({tokens, tokens}, at::kBool).tril();
    if (s.window > 0) mask = mask.logical_and(at::ones({tokens, tokens}, at::kBool).triu(1 - s.window));
    const at::Tensor y =
        at::scaled_dot_product_attention(heads(0, queries, 1), heads(queries, keys, group),
                                         heads(queries + keys, keys, group), mask, 0.0, false, s.scale);
    outputs.push_back(y.transpose(0, 1).reshape({tokens, queries}));
  }
  return at::cat(outputs);
}

TEST(FusedAttention, AgreesWithLibtorch) {
  at::manual_seed(1);
  const Starts starts = {0, 1, 34, 34, 60, 160};
  for (const AttentionShape& s : {shape_of(6, 2, 16), shape_of(3, 3, 64), shape_of(4, 1, 8, 5)}) {
    const at::Tensor qkv = random_qkv(starts.back(), s), grad = at::randn({starts.back(), s.num_heads * s.head_dim});
    const at::Tensor leaf = qkv.clone().requires_grad_();
    const Starts filled = {0, 1, 34, 60, 160};  // without the empty document
    const at::Tensor expected = by_libtorch(leaf, filled, s);
    expected.backward(grad);
    const Attention result = attention(qkv, starts, s);
    EXPECT_TRUE(at::allclose(result.y_NO, expected, 1e-5, 1e-5));
    EXPECT_TRUE(at::allclose(attention_backward(grad, qkv, result, starts, s), leaf.grad(), 1e-4, 1e-5));
  }
}

// Long documents go through libtorch's fused kernel, short ones and windows through ours: the same numbers, and the
// boundary between the two is not to be seen.
TEST(FusedAttention, LongAndShortDocumentsTogether) {
  at::manual_seed(7);
  const Starts starts = {0, 40, 340, 345, 545};
  for (const AttentionShape& s : {shape_of(6, 2, 16), shape_of(2, 2, 64), shape_of(4, 2, 16, 90)}) {
    const at::Tensor qkv = random_qkv(starts.back(), s), grad = at::randn({starts.back(), s.num_heads * s.head_dim});
    const at::Tensor leaf = qkv.clone().requires_grad_();
    const at::Tensor expected = by_libtorch(leaf, starts, s);
    expected.backward(grad);
    const Attention result = attention(qkv, starts, s);
    EXPECT_TRUE(at::allclose(result.y_NO, expected, 1e-5, 1e-5));
    const at::Tensor gradient = attention_backward(grad, qkv, result, starts, s);
    EXPECT_TRUE(at::allclose(gradient, leaf.grad(), 1e-4, 2e-5));
    at::Tensor other = qkv.clone();
    other.narrow(0, 0, 40).normal_();
    EXPECT_TRUE(at::equal(attention(other, starts, s).y_NO.narrow(0, 40, 505), result.y_NO.narrow(0, 40, 505)));
    at::set_num_threads(1);
    const Attention alone = attention(qkv, starts, s);
    EXPECT_TRUE(at::equal(alone.y_NO, result.y_NO));
    EXPECT_TRUE(at::equal(attention_backward(grad, qkv, alone, starts, s), gradient));
    at::set_num_threads(2);
  }
}

// Case "packing": changing document 1 leaves document 2 bitwise unchanged, and so does packing it elsewhere.
TEST(FusedAttention, DocumentsDoNotLeak) {
  const AttentionShape s = shape_of(6, 2, 16);
  at::Tensor qkv = random_qkv(50, s);
  const at::Tensor grad = at::randn({50, 96});
  const Starts starts = {0, 20, 50};
  const Attention before = attention(qkv, starts, s);
  const at::Tensor gradient = attention_backward(grad, qkv, before, starts, s);
  qkv.narrow(0, 0, 20).normal_();
  const Attention after = attention(qkv, starts, s);
  EXPECT_FALSE(at::equal(before.y_NO.narrow(0, 0, 20), after.y_NO.narrow(0, 0, 20)));
  EXPECT_TRUE(at::equal(before.y_NO.narrow(0, 20, 30), after.y_NO.narrow(0, 20, 30)));
  const at::Tensor alone = qkv.narrow(0, 20, 30).contiguous();
  const Starts one = {0, 30};
  const Attention single = attention(alone, one, s);
  EXPECT_TRUE(at::equal(single.y_NO, after.y_NO.narrow(0, 20, 30)));
  EXPECT_TRUE(at::equal(attention_backward(grad.narrow(0, 20, 30).contiguous(), alone, single, one, s),
                        gradient.narrow(0, 20, 30)));
}

TEST(FusedAttention, ThreadsChangeNoBit) {
  const AttentionShape s = shape_of(6, 2, 16);
  const at::Tensor qkv = random_qkv(120, s), grad = at::randn({120, 96});
  const Starts starts = {0, 7, 50, 120};
  const int before = at::get_num_threads();
  std::vector<at::Tensor> outputs, gradients;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    const Attention result = attention(qkv, starts, s);
    outputs.push_back(result.y_NO);
    gradients.push_back(attention_backward(grad, qkv, result, starts, s));
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(outputs[0], outputs[1]));
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
}

TEST(FusedAttention, RotaryTurnsQueriesAndKeysOnly) {
  const AttentionShape s = shape_of(4, 2, 8);
  const at::Tensor qkv = random_qkv(40, s), angle = at::randn({40, 4}), cos = angle.cos(), sin = angle.sin();
  at::Tensor turned = qkv.clone();
  rotary_(turned, cos, sin, s);
  const at::Tensor heads = qkv.view({40, 8, 8}), a = heads.narrow(2, 0, 4), b = heads.narrow(2, 4, 4);
  const at::Tensor c = cos.unsqueeze(1), t = sin.unsqueeze(1);
  const at::Tensor expected = at::cat({a * c - b * t, b * c + a * t}, 2);
  EXPECT_TRUE(at::allclose(turned.view({40, 8, 8}).narrow(1, 0, 6), expected.narrow(1, 0, 6), 1e-5, 1e-6));
  EXPECT_TRUE(at::equal(turned.view({40, 8, 8}).narrow(1, 6, 2), heads.narrow(1, 6, 2)));
  rotary_(turned, cos, sin, s, /*backward=*/true);
  EXPECT_TRUE(at::allclose(turned, qkv, 1e-5, 1e-5));
}

TEST(FusedAttention, RefusesWhatDoesNotFit) {
  const AttentionShape s = shape_of(4, 2, 8);
  const at::Tensor qkv = random_qkv(10, s);
  for (const Starts& starts : {Starts{0, 9}, Starts{1, 10}, Starts{0, 7, 5, 10}, Starts{}}) {
    EXPECT_THROW(attention(qkv, starts, s), InternalError);
  }
  EXPECT_THROW(attention(qkv, Starts{0, 10}, shape_of(3, 2, 8)), InternalError);
}

}  // namespace
}  // namespace headrace::tensor
