// Every family on a GPU against transformers in fp32 (tools/make_model_goldens.py).
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "tests/model/golden_case.h"

namespace headrace::model {
namespace {

class CudaGolden : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "libtorch finds no usable GPU";
  }
};

TEST_P(CudaGolden, LossLogitsAndGradientsAgreeWithTransformers) {
  GoldenCase c(GetParam());
  c.move_to(at::TensorOptions(at::kFloat).device(at::kCUDA, 0));
  const at::Tensor logits = all_logits(c, c.batch).cpu();
  EXPECT_LT((logits - tensor_of(c.golden, "logits")).abs().max().item<double>(), 1e-4);
  const LossResult result = train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kInput);
  const double expected = tensor_of(c.golden, "loss_sum").item<double>();
  EXPECT_NEAR(result.loss_sum, expected, 1e-5 * expected);
  for (int64_t i = 0; i < c.model.num_blocks(); ++i) {
    for (const ParameterSpec& parameter : c.model.blocks()[i].parameters) {
      const at::Tensor ours = tensor::view_of(c.buffers[i].gradients, parameter.offset, parameter.shape).cpu();
      const at::Tensor theirs = tensor_of(c.golden, "grad." + parameter.name);
      if (theirs.abs().max().item<double>() < 1e-5) {
        EXPECT_LT(ours.abs().max().item<double>(), 1e-5) << parameter.name;
      } else {
        EXPECT_LT(distance(ours, theirs), 1e-3) << parameter.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CudaGolden, ::testing::ValuesIn(kFamilies),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace headrace::model
