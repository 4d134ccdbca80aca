#include "headrace/tensor/fused_activation.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

TEST(FusedActivation, SwigluAgreesWithAutograd) {
  at::manual_seed(1);
  const at::Tensor gate_up = at::randn({50, 2 * 70}) * 3, grad = at::randn({50, 70});
  const at::Tensor leaf = gate_up.clone().requires_grad_();
  const at::Tensor expected = at::silu(leaf.narrow(1, 0, 70)) * leaf.narrow(1, 70, 70);
  expected.backward(grad);
  const at::Tensor y = swiglu(gate_up);
  EXPECT_TRUE(at::allclose(y, expected, 1e-5, 1e-6));
  at::Tensor in_place = gate_up.clone(), again = grad.clone();
  swiglu_backward_(in_place, again);
  EXPECT_TRUE(at::equal(again, y));
  EXPECT_TRUE(at::allclose(in_place, leaf.grad(), 1e-5, 1e-6));
}

TEST(FusedActivation, GeluAgreesWithAutograd) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({50, 70}) * 3, grad = at::randn({50, 70});
  // In double: in fp32 libtorch's own gradient is off by a few 1e-6 where tanh saturates.
  const at::Tensor leaf = x.to(at::kDouble).requires_grad_();
  const at::Tensor expected = at::gelu(leaf, "tanh");
  expected.backward(grad.to(at::kDouble));
  const at::Tensor y = gelu_tanh(x);
  EXPECT_TRUE(at::allclose(y.to(at::kDouble), expected, 1e-5, 1e-6));
  at::Tensor in_place = x.clone(), again = grad.clone();
  gelu_tanh_backward_(in_place, again);
  EXPECT_TRUE(at::equal(again, y));
  EXPECT_TRUE(at::allclose(in_place.to(at::kDouble), leaf.grad(), 1e-5, 1e-6));
}

TEST(FusedActivation, ThreadsChangeNoBit) {
  const at::Tensor x = at::randn({333, 2 * 301});
  const int before = at::get_num_threads();
  std::vector<at::Tensor> gated, curved;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    gated.push_back(swiglu(x));
    curved.push_back(gelu_tanh(x));
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(gated[0], gated[1]));
  EXPECT_TRUE(at::equal(curved[0], curved[1]));
}

}  // namespace
}  // namespace headrace::tensor
