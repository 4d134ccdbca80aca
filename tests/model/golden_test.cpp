// Every family against transformers in fp32 (tools/make_model_goldens.py): by our kernels, and in fp64 by libtorch's
// operators, with which a model computes on a GPU too.
#include <gtest/gtest.h>

#include "tests/model/golden_case.h"

namespace headrace::model {
namespace {

class Golden : public ::testing::TestWithParam<std::tuple<const char*, at::ScalarType>> {
 protected:
  GoldenCase load() {
    GoldenCase c(std::get<0>(GetParam()));
    c.move_to(std::get<1>(GetParam()));
    return c;
  }
};

TEST_P(Golden, LogitsAgreeWithTransformers) {
  const GoldenCase c = load();
  const at::Tensor expected = tensor_of(c.golden, "logits");
  ASSERT_EQ(forward_all(c.model, c.buffers, c.batch).scalar_type(), std::get<1>(GetParam()));
  const double worst = (all_logits(c, c.batch) - expected).abs().max().item<double>();
  EXPECT_LT(worst, 1e-5) << "logits reach " << expected.abs().max().item<double>();
}

TEST_P(Golden, LossAndEveryGradientAgreeWithTransformers) {
  GoldenCase c = load();
  const LossResult result = train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kAll);
  const double expected = tensor_of(c.golden, "loss_sum").item<double>();
  EXPECT_NEAR(result.loss_sum, expected, 1e-5 * expected);
  EXPECT_EQ(result.trained_tokens, c.batch.num_trained_tokens());
  int64_t num_compared = 0;
  for (int64_t i = 0; i < c.model.num_blocks(); ++i) {
    for (const ParameterSpec& parameter : c.model.blocks()[i].parameters) {
      const at::Tensor ours = tensor::view_of(c.buffers[i].gradients, parameter.offset, parameter.shape);
      const at::Tensor theirs = tensor_of(c.golden, "grad." + parameter.name);
      ASSERT_EQ(ours.sizes(), theirs.sizes()) << parameter.name;
      // A key's bias shifts all scores of a query alike: its true gradient is zero and both sides hold rounding.
      const bool is_zero = theirs.abs().max().item<double>() < 1e-5;
      if (is_zero)
        EXPECT_LT(ours.abs().max().item<double>(), 1e-5) << parameter.name;
      else
        EXPECT_LT(distance(ours, theirs), 1e-4) << parameter.name;
      ++num_compared;
    }
  }
  const auto is_gradient = [](const safetensors::TensorInfo& info) { return info.name.starts_with("grad."); };
  EXPECT_EQ(num_compared, std::ranges::count_if(c.golden.tensors(), is_gradient)) << "every gradient has its golden";
}

TEST_P(Golden, LossWithoutGradientsIsTheSame) {
  GoldenCase c = load();
  const LossResult trained = train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kInput);
  const LossResult evaluated = loss_all(c.model, c.buffers, c.batch);
  EXPECT_NEAR(evaluated.loss_sum, trained.loss_sum, 1e-6 * trained.loss_sum);
  EXPECT_EQ(evaluated.trained_tokens, trained.trained_tokens);
}

INSTANTIATE_TEST_SUITE_P(Families, Golden,
                         ::testing::Combine(::testing::ValuesIn(kFamilies), ::testing::Values(at::kFloat, at::kDouble)),
                         [](const auto& param) {
                           const bool is_ours = std::get<1>(param.param) == at::kFloat;
                           return std::get<0>(param.param) + std::string(is_ours ? "" : "_by_libtorch");
                         });

}  // namespace
}  // namespace headrace::model
