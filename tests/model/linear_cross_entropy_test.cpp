#include "headrace/model/linear_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "headrace/base/errors.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

struct Case {
  at::Tensor x = at::randn({37, 24}), weight = at::randn({501, 24});
  at::Tensor targets = at::randint(0, 501, {37}, at::kLong);
  Case() {
    for (int64_t n = 0; n < 37; n += 3) targets[n] = kMaskedLabel;
  }
};

struct Expected {
  double loss;
  at::Tensor grad_x, grad_weight;
  Expected(const Case& c, double scale) {
    const at::Tensor x = c.x.clone().requires_grad_(), weight = c.weight.clone().requires_grad_();
    const at::Tensor loss_sum =
        at::nll_loss(at::log_softmax(at::mm(x, weight.t()), 1), c.targets, {}, at::Reduction::Sum, kMaskedLabel);
    (loss_sum * scale).backward();
    loss = loss_sum.item<double>();
    grad_x = x.grad();
    grad_weight = weight.grad();
  }
};

TEST(LinearCrossEntropy, LossAndGradientsAgreeWithAutograd) {
  at::manual_seed(1);
  const Case c;
  const Expected expected(c, 0.25);
  const at::Tensor grad_weight = at::ones_like(c.weight);
  const LinearCrossEntropy result = linear_cross_entropy(c.x, c.weight, c.targets, 0.25f, grad_weight);
  EXPECT_EQ(result.trained_tokens, 24);
  EXPECT_NEAR(result.loss_sum, expected.loss, 1e-6 * expected.loss);
  EXPECT_TRUE(at::allclose(result.grad_x_NC, expected.grad_x, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(grad_weight, expected.grad_weight + 1, 1e-5, 1e-6));
}

TEST(LinearCrossEntropy, ForwardOnlyGivesTheSameLossAndNoGradients) {
  at::manual_seed(1);
  const Case c;
  const LinearCrossEntropy with = linear_cross_entropy(c.x, c.weight, c.targets, 1, at::zeros_like(c.weight));
  const LinearCrossEntropy without = linear_cross_entropy(c.x, c.weight, c.targets, 1, {});
  EXPECT_EQ(with.loss_sum, without.loss_sum);
  EXPECT_FALSE(without.grad_x_NC.defined());
}

// What chunks may change is the rounding of libtorch's products, no more.
TEST(LinearCrossEntropy, ChunksChangeOnlyRounding) {
  at::manual_seed(1);
  const Case c;
  const at::Tensor whole_weight = at::zeros_like(c.weight);
  const LinearCrossEntropy whole = linear_cross_entropy(c.x, c.weight, c.targets, 1, whole_weight);
  for (const int64_t rows : {0, 1, 5, 23}) {
    const at::Tensor grad_weight = at::zeros_like(c.weight);
    const auto part = linear_cross_entropy(c.x, c.weight, c.targets, 1, grad_weight, rows * 501 * 4);
    EXPECT_NEAR(part.loss_sum, whole.loss_sum, 1e-6 * whole.loss_sum) << rows;
    EXPECT_TRUE(at::allclose(part.grad_x_NC, whole.grad_x_NC, 1e-5, 1e-6)) << rows;
    EXPECT_TRUE(at::allclose(grad_weight, whole_weight, 1e-5, 1e-6)) << rows;
  }
}

// Case "masks": a batch whose labels are all masked.
TEST(LinearCrossEntropy, AllMaskedIsZeroWithoutNan) {
  Case c;
  c.targets.fill_(kMaskedLabel);
  const at::Tensor grad_weight = at::zeros_like(c.weight);
  const LinearCrossEntropy result = linear_cross_entropy(c.x, c.weight, c.targets, 1, grad_weight);
  EXPECT_EQ(result.loss_sum, 0);
  EXPECT_EQ(result.trained_tokens, 0);
  EXPECT_TRUE(at::equal(result.grad_x_NC, at::zeros_like(c.x)));
  EXPECT_TRUE(at::equal(grad_weight, at::zeros_like(c.weight)));
}

TEST(LinearCrossEntropy, AMaskedRowIsNeverRead) {
  at::manual_seed(1);
  Case c;
  const LinearCrossEntropy clean = linear_cross_entropy(c.x, c.weight, c.targets, 1, at::zeros_like(c.weight));
  c.x[0].fill_(std::nan(""));  // row 0 is masked
  const at::Tensor grad_weight = at::zeros_like(c.weight);
  const LinearCrossEntropy result = linear_cross_entropy(c.x, c.weight, c.targets, 1, grad_weight);
  EXPECT_EQ(result.loss_sum, clean.loss_sum);
  EXPECT_TRUE(at::isfinite(grad_weight).all().item<bool>());
  EXPECT_TRUE(at::equal(result.grad_x_NC[0], at::zeros({24})));
}

TEST(LinearCrossEntropy, LargeLogitsStayFinite) {
  at::manual_seed(1);
  Case c;
  c.x.mul_(1e4);
  const Expected expected(c, 1);
  const at::Tensor grad_weight = at::zeros_like(c.weight);
  const LinearCrossEntropy result = linear_cross_entropy(c.x, c.weight, c.targets, 1, grad_weight);
  EXPECT_NEAR(result.loss_sum, expected.loss, 1e-5 * expected.loss);
  EXPECT_TRUE(at::isfinite(grad_weight).all().item<bool>());
}

TEST(LinearCrossEntropy, RefusesWrongLabelsAndShapes) {
  Case c;
  c.targets[1] = 501;
  EXPECT_THROW(linear_cross_entropy(c.x, c.weight, c.targets, 1, {}), DataError);
  c.targets[1] = -1;
  EXPECT_THROW(linear_cross_entropy(c.x, c.weight, c.targets, 1, {}), DataError);
  EXPECT_THROW(linear_cross_entropy(c.x, c.weight.narrow(1, 0, 23), c.targets, 1, {}), InternalError);
  EXPECT_THROW(linear_cross_entropy(c.x, c.weight, c.targets.narrow(0, 0, 5), 1, {}), InternalError);
}

}  // namespace
}  // namespace headrace::model
