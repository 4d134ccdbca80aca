// libtorch's operators against our kernels on the same numbers: in fp64 closely, in bf16 within its rounding.
#include "headrace/tensor/aten_ops.h"

#include <gtest/gtest.h>

#include "headrace/tensor/fused_activation.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

constexpr double kEpsilon = 1e-5;

// What a type may be away from fp32, relative and absolute.
double tolerance(at::ScalarType type) { return type == at::kDouble ? 2e-5 : 3e-2; }

class AtenOps : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override { at::manual_seed(3); }

  // Numbers that both sides hold exactly.
  at::Tensor draw(at::IntArrayRef shape, double mean = 0) const {
    return (at::randn(shape) + mean).to(at::kBFloat16).to(at::kFloat);
  }
  at::Tensor moved(const at::Tensor& x) const { return x.to(GetParam()).clone(); }
  void expect_close(const at::Tensor& theirs, const at::Tensor& ours) const {
    ASSERT_EQ(theirs.scalar_type(), GetParam());
    ASSERT_EQ(theirs.sizes(), ours.sizes());
    const double bound = tolerance(GetParam());
    EXPECT_TRUE(at::allclose(theirs.to(at::kFloat), ours, bound, bound))
        << (theirs.to(at::kFloat) - ours).abs().max().item<double>();
  }
};

INSTANTIATE_TEST_SUITE_P(Types, AtenOps, ::testing::Values(at::kDouble, at::kBFloat16),
                         [](const auto& param) { return c10::toString(param.param); });

TEST_P(AtenOps, RmsNorm) {
  const at::Tensor x = draw({33, 48}), weight = draw({48}), grad = draw({33, 48});
  const at::Tensor their_x = moved(x), their_weight = moved(weight);
  const struct RmsNorm ours = rms_norm(x, weight, kEpsilon), theirs = rms_norm(their_x, their_weight, kEpsilon);
  expect_close(theirs.y_NC, ours.y_NC);
  EXPECT_EQ(theirs.inverse_N.scalar_type(), GetParam() == at::kDouble ? at::kDouble : at::kFloat);
  EXPECT_TRUE(at::equal(theirs.y_NC, rms_norm_again(their_x, theirs.inverse_N, their_weight)));
  at::Tensor grad_x = at::ones_like(x), their_grad_x = at::ones_like(their_x);
  const at::Tensor sum = at::ones({48}), their_sum = moved(sum);
  rms_norm_backward(grad, x, ours.inverse_N, {weight, sum}, grad_x);
  rms_norm_backward(moved(grad), their_x, theirs.inverse_N, {their_weight, their_sum}, their_grad_x);
  expect_close(their_grad_x, grad_x);
  expect_close(their_sum, sum);
}

TEST_P(AtenOps, LayerNorm) {
  const at::Tensor x = draw({33, 48}, /*mean=*/2), weight = draw({48}), bias = draw({48}), grad = draw({33, 48});
  const at::Tensor their_x = moved(x), their_weight = moved(weight), their_bias = moved(bias);
  const struct LayerNorm ours = layer_norm(x, weight, bias, kEpsilon),
                         theirs = layer_norm(their_x, their_weight, their_bias, kEpsilon);
  expect_close(theirs.y_NC, ours.y_NC);
  EXPECT_TRUE(at::equal(theirs.y_NC, layer_norm_again(their_x, theirs, their_weight, their_bias)));
  at::Tensor grad_x = at::ones_like(x), their_grad_x = at::ones_like(their_x);
  const at::Tensor sum = at::ones({48}), bias_sum = at::ones({48}), their_sum = moved(sum), their_bias_sum = moved(sum);
  layer_norm_backward(grad, x, ours, {weight, sum}, {bias, bias_sum}, grad_x);
  layer_norm_backward(moved(grad), their_x, theirs, {their_weight, their_sum}, {their_bias, their_bias_sum},
                      their_grad_x);
  expect_close(their_grad_x, grad_x);
  expect_close(their_sum, sum);
  expect_close(their_bias_sum, bias_sum);
}

TEST_P(AtenOps, Activations) {
  for (const bool is_gated : {true, false}) {
    at::Tensor x = draw({17, is_gated ? 80 : 40}), grad = draw({17, 40});
    at::Tensor their_x = moved(x), their_grad = moved(grad);
    const at::Tensor ours = is_gated ? swiglu(x) : gelu_tanh(x),
                     theirs = is_gated ? swiglu(their_x) : gelu_tanh(their_x);
    expect_close(theirs, ours);
    is_gated ? swiglu_backward_(x, grad) : gelu_tanh_backward_(x, grad);
    is_gated ? swiglu_backward_(their_x, their_grad) : gelu_tanh_backward_(their_x, their_grad);
    expect_close(their_x, x);
    EXPECT_TRUE(at::equal(their_grad, theirs)) << "the activation once more";
  }
}

TEST_P(AtenOps, RotaryTurnsAndTurnsBack) {
  const AttentionShape shape{.num_heads = 4, .num_kv_heads = 2, .head_dim = 8, .scale = 1, .window = 0};
  at::Tensor qkv = draw({9, 64});
  const at::Tensor angles = at::rand({9, 4}) * 6, before = moved(qkv);
  at::Tensor their_qkv = before.clone();
  rotary_(qkv, angles.cos(), angles.sin(), shape);
  rotary_(their_qkv, angles.cos(), angles.sin(), shape);
  expect_close(their_qkv, qkv);
  rotary_(their_qkv, angles.cos(), angles.sin(), shape, /*backward=*/true);
  expect_close(their_qkv, before.to(at::kFloat));
}

// Grouped heads, packed documents of one token and more, with and without a window.
TEST_P(AtenOps, Attention) {
  const std::vector<int64_t> starts = {0, 1, 8, 8, 25};
  for (const int64_t window : {0, 3}) {
    const AttentionShape shape{.num_heads = 4, .num_kv_heads = 2, .head_dim = 8, .scale = 0.3, .window = window};
    const at::Tensor qkv = draw({25, 64}), grad = draw({25, 32}), their_qkv = moved(qkv);
    const struct Attention ours = attention(qkv, starts, shape), theirs = attention(their_qkv, starts, shape);
    expect_close(theirs.y_NO, ours.y_NO);
    EXPECT_TRUE(at::allclose(theirs.lse_HN.to(at::kFloat), ours.lse_HN, 1e-5, 1e-5));
    expect_close(attention_backward(moved(grad), their_qkv, theirs, starts, shape),
                 attention_backward(grad, qkv, ours, starts, shape));
  }
}

TEST_P(AtenOps, EmbeddingAndRowSums) {
  const at::Tensor ids = at::tensor({3, 0, 3, 2, 3}, at::kLong), grad = draw({5, 16});
  const at::Tensor table = at::ones({4, 16}), their_table = moved(table), sum = at::ones({16}), their_sum = moved(sum);
  embedding_backward(ids, grad, table);
  embedding_backward(ids, moved(grad), their_table);
  expect_close(their_table, table);
  add_row_sums(grad, sum);
  add_row_sums(moved(grad), their_sum);
  expect_close(their_sum, sum);
}

}  // namespace
}  // namespace headrace::tensor
