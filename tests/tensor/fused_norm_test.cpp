#include "headrace/tensor/fused_norm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

constexpr double kEpsilon = 1e-5;

at::Tensor rms_by_definition(const at::Tensor& x, const at::Tensor& weight) {
  return x * at::rsqrt(x.pow(2).mean(-1, true) + kEpsilon) * weight;
}

TEST(FusedNorm, RmsAgreesWithAutograd) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({77, 100}), weight = at::randn({100}), grad = at::randn({77, 100});
  const at::Tensor ax = x.clone().requires_grad_(), aw = weight.clone().requires_grad_();
  rms_by_definition(ax, aw).backward(grad);
  const RmsNorm norm = rms_norm(x, weight, kEpsilon);
  at::Tensor grad_x = at::ones_like(x);
  const at::Tensor grad_weight = at::ones({100});
  rms_norm_backward(grad, x, norm.inverse_N, {weight, grad_weight}, grad_x);
  EXPECT_TRUE(at::allclose(norm.y_NC, rms_by_definition(x, weight), 1e-5, 1e-6));
  EXPECT_TRUE(at::equal(norm.y_NC, rms_norm_again(x, norm.inverse_N, weight)));
  EXPECT_TRUE(at::allclose(grad_x, ax.grad() + 1, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(grad_weight, aw.grad() + 1, 1e-5, 1e-5));
}

TEST(FusedNorm, LayerAgreesWithAutograd) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({77, 100}) + 2, weight = at::randn({100}), bias = at::randn({100});
  const at::Tensor grad = at::randn({77, 100});
  const at::Tensor ax = x.clone().requires_grad_(), aw = weight.clone().requires_grad_();
  const at::Tensor ab = bias.clone().requires_grad_();
  at::layer_norm(ax, {100}, aw, ab, kEpsilon).backward(grad);
  const LayerNorm norm = layer_norm(x, weight, bias, kEpsilon);
  at::Tensor grad_x = at::ones_like(x);
  const at::Tensor grad_weight = at::ones({100}), grad_bias = at::ones({100});
  layer_norm_backward(grad, x, norm, {weight, grad_weight}, {bias, grad_bias}, grad_x);
  EXPECT_TRUE(at::allclose(norm.y_NC, at::layer_norm(x, {100}, weight, bias, kEpsilon), 1e-5, 1e-5));
  EXPECT_TRUE(at::equal(norm.y_NC, layer_norm_again(x, norm, weight, bias)));
  EXPECT_TRUE(at::allclose(grad_x, ax.grad() + 1, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(grad_weight, aw.grad() + 1, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(grad_bias, ab.grad() + 1, 1e-5, 1e-5));
}

TEST(FusedNorm, ThreadsChangeNoBit) {
  const at::Tensor x = at::randn({333, 576}), weight = at::randn({576}), bias = at::randn({576});
  const at::Tensor grad = at::randn({333, 576});
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    const RmsNorm rms = rms_norm(x, weight, kEpsilon);
    const LayerNorm layer = layer_norm(x, weight, bias, kEpsilon);
    at::Tensor grad_x = at::zeros_like(x);
    const at::Tensor grad_weight = at::zeros({576}), grad_bias = at::zeros({576});
    rms_norm_backward(grad, x, rms.inverse_N, {weight, grad_weight}, grad_x);
    layer_norm_backward(grad, x, layer, {weight, grad_weight}, {bias, grad_bias}, grad_x);
    results.push_back({rms.y_NC, layer.y_NC, grad_x, grad_weight, grad_bias});
  }
  at::set_num_threads(before);
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(at::equal(results[0][i], results[1][i])) << i;
}

}  // namespace
}  // namespace headrace::tensor
