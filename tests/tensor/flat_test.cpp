#include "headrace/tensor/flat.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

TEST(Flat, ViewsShareTheBuffer) {
  const at::Tensor flat = at::arange(20, at::kFloat);
  at::Tensor view = view_of(flat, 4, {2, 3});
  EXPECT_EQ(view[1][2].item<float>(), 9.0F);
  view.fill_(-1);
  EXPECT_EQ(flat[9].item<float>(), -1.0F);
  EXPECT_EQ(flat[10].item<float>(), 10.0F);
  EXPECT_EQ(view_of(flat, 20, {0, 5}).numel(), 0) << "an empty parameter at the end";
}

TEST(Flat, RefusesWhatDoesNotFit) {
  const at::Tensor flat = at::zeros({20});
  EXPECT_THROW(view_of(flat, 15, {2, 3}), InternalError);
  EXPECT_THROW(view_of(flat, -1, {2}), InternalError);
  EXPECT_THROW(view_of(at::zeros({4, 5}), 0, {2}), InternalError);
}

}  // namespace
}  // namespace headrace::tensor
