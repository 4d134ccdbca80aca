#include "headrace/tensor/fused_linear.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

TEST(FusedLinear, AddsTheGradientsThatAutogradGives) {
  at::manual_seed(1);
  for (const bool is_transposed : {false, true}) {  // GPT-2 stores [in, out]
    const at::Tensor x = at::randn({29, 16});
    const at::Tensor stored = is_transposed ? at::randn({16, 40}) : at::randn({40, 16});
    const at::Tensor weight = is_transposed ? stored.t() : stored, bias = at::randn({40}), grad = at::randn({29, 40});
    const at::Tensor ax = x.clone().requires_grad_(), aw = weight.clone().requires_grad_();
    const at::Tensor ab = bias.clone().requires_grad_();
    at::linear(ax, aw, ab).backward(grad);

    const at::Tensor grad_stored = at::ones_like(stored), grad_bias = at::ones_like(bias);
    const at::Tensor grad_weight = is_transposed ? grad_stored.t() : grad_stored;
    EXPECT_TRUE(at::allclose(linear(x, weight, bias), at::linear(x, weight, bias), 1e-5, 1e-5));
    const at::Tensor grad_x = linear_backward(grad, x, {weight, grad_weight}, {bias, grad_bias});
    EXPECT_TRUE(at::allclose(grad_x, ax.grad(), 1e-5, 1e-5));
    EXPECT_TRUE(at::allclose(grad_weight, aw.grad() + 1, 1e-5, 1e-5));
    EXPECT_TRUE(at::allclose(grad_bias, ab.grad() + 1, 1e-5, 1e-5));

    at::Tensor residual = at::ones({29, 40});
    linear_add_(residual, x, weight, bias);
    EXPECT_TRUE(at::allclose(residual, at::linear(x, weight, bias) + 1, 1e-5, 1e-5));
  }
}

TEST(FusedLinear, ATallWeightIsMultipliedInTiles) {
  at::manual_seed(2);
  for (const int64_t columns : {1, 383, 384, 385, 1000}) {  // around the tile's width
    const at::Tensor x = at::randn({7, 16}), weight = at::randn({columns, 16});
    at::Tensor out = at::full({7, columns}, 9.0);
    tall_linear_out(out, x, weight);
    EXPECT_TRUE(at::allclose(out, at::linear(x, weight), 1e-5, 1e-5)) << columns;
  }
  at::Tensor narrow = at::empty({7, 5});
  EXPECT_THROW(tall_linear_out(narrow, at::randn({7, 16}), at::randn({6, 16})), InternalError);
}

TEST(FusedLinear, AFrozenParameterIsLeftAlone) {
  const at::Tensor x = at::randn({3, 4}), weight = at::randn({5, 4}), grad = at::randn({3, 5});
  EXPECT_TRUE(at::allclose(linear_backward(grad, x, {weight, {}}), at::mm(grad, weight)));
}

TEST(FusedEmbedding, AddsRowsInTheOrderOfTokens) {
  at::manual_seed(1);
  const at::Tensor ids = at::randint(0, 7, {200}, at::kLong), grad = at::randn({200, 130});
  at::Tensor sum = at::ones({7, 130}), expected = at::ones({7, 130});
  for (int64_t n = 0; n < 200; ++n) expected[ids[n].item<int64_t>()].add_(grad[n]);
  embedding_backward(ids, grad, sum);
  EXPECT_TRUE(at::equal(sum, expected));
}

TEST(FusedEmbedding, RefusesWhatDoesNotFit) {
  const at::Tensor table = at::zeros({4, 8}), grad = at::zeros({2, 8});
  EXPECT_THROW(embedding_backward(at::tensor({0L, 4L}), grad, table), InternalError);
  EXPECT_THROW(embedding_backward(at::tensor({-1L, 0L}), grad, table), InternalError);
  EXPECT_THROW(embedding_backward(at::tensor({1L}), grad, table), InternalError);
  EXPECT_NO_THROW(embedding_backward(at::empty({0}, at::kLong), at::empty({0, 8}), table));
}

// Everything but libtorch's own products gives the same bits with one thread and with two.
TEST(FusedLinear, RowSumsDoNotDependOnThreads) {
  const at::Tensor grad = at::randn({333, 700}), ids = at::randint(0, 50, {333}, at::kLong);
  const int before = at::get_num_threads();
  std::vector<at::Tensor> sums, tables;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    sums.push_back(at::zeros({700}));
    tables.push_back(at::zeros({50, 700}));
    add_row_sums(grad, sums.back());
    embedding_backward(ids, grad, tables.back());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(sums[0], sums[1]));
  EXPECT_TRUE(at::equal(tables[0], tables[1]));
  EXPECT_TRUE(at::allclose(sums[0], grad.sum(0), 1e-5, 1e-4));
}

}  // namespace
}  // namespace headrace::tensor
