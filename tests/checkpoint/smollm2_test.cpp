// Real weights against transformers: SmolLM2-135M-Instruct as the demo's tools make it.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "headrace/checkpoint/import.h"
#include "headrace/model/block.h"
#include "headrace/model/run.h"
#include "headrace/safetensors/model_folder.h"
#include "headrace/tensor/flat.h"
#include "headrace/tensor/torch.h"

namespace headrace::checkpoint {
namespace {

namespace fs = std::filesystem;

at::Tensor tensor_of(const safetensors::File& file, const std::string& name, at::ScalarType type = at::kFloat) {
  const safetensors::TensorInfo* info = file.find(name);
  if (info == nullptr) throw std::runtime_error("the golden has no " + name);
  at::Tensor tensor = at::empty(info->shape, type);
  std::memcpy(tensor.mutable_data_ptr(), file.bytes(*info).data(), tensor.nbytes());
  return tensor;
}

model::Batch batch_of(const safetensors::File& golden) {
  const at::Tensor starts = tensor_of(golden, "starts", at::kLong);
  const int64_t* start = starts.const_data_ptr<int64_t>();
  return {tensor_of(golden, "ids", at::kLong),
          tensor_of(golden, "positions", at::kLong),
          tensor_of(golden, "targets", at::kLong),
          {start, start + starts.numel()}};
}

std::vector<model::BlockBuffers> load(const fs::path& folder, const model::Model& model) {
  std::vector<at::Tensor> flat;
  for (const model::BlockSpec& block : model.blocks()) flat.push_back(at::empty({block.numel}));
  import_weights(safetensors::ModelFolder::open(folder), model, flat);
  std::vector<model::BlockBuffers> buffers;
  for (const at::Tensor& weights : flat) buffers.push_back({weights, at::zeros_like(weights)});
  return buffers;
}

double train_pass(const model::Model& model, const std::vector<model::BlockBuffers>& buffers,
                  const model::Batch& batch) {
  std::vector<model::BlockTape> tapes;
  at::Tensor x_NC;
  for (int64_t i = 0; i < model.head_index(); ++i) {
    tapes.push_back(model::forward_block(model, i, buffers[i], x_NC, batch, model::Keep::kAll));
    x_NC = tapes.back().output_NC;
  }
  const model::LossResult loss = model::loss_forward_backward(model, buffers.back(), buffers[0], x_NC, batch, 1.0F);
  at::Tensor grad_NC = loss.grad_x_NC;
  for (int64_t i = model.head_index() - 1; i >= 0; --i) {
    grad_NC = model::backward_block(model, buffers[i], std::move(tapes[i]), grad_NC, batch);
  }
  return loss.loss_sum;
}

TEST(SmolLM2, LogitsLossAndGradientNormsAgreeWithTransformers) {
  const fs::path root = HEADRACE_SOURCE_DIR, folder = root / "demo" / "SmolLM2-135M-Instruct";
  if (!fs::exists(folder / "model.safetensors")) GTEST_SKIP() << folder << " is not there; `make demo` makes it.";
  at::set_num_threads(2);
  const safetensors::File golden = safetensors::File::open(root / "tests/golden/model/smollm2_135m.safetensors");
  const model::Batch batch = batch_of(golden);
  const model::Model model(config::ModelShape::load(folder));
  const std::vector<model::BlockBuffers> buffers = load(folder, model);

  const at::Tensor logits =
      model::logits(model, buffers.back(), buffers[0], model::forward_all(model, buffers, batch)).slice(1, 0, {}, 97);
  const at::Tensor expected = tensor_of(golden, "logits");
  // 30 layers of fp32 in another order: a hundred roundings of the largest logit.
  const double largest = expected.abs().max().item<double>();
  EXPECT_LT((logits - expected).abs().max().item<double>(), 1e-5 * largest) << "largest logit " << largest;

  const double loss_sum = tensor_of(golden, "loss_sum").item<double>();
  EXPECT_NEAR(train_pass(model, buffers, batch), loss_sum, 1e-6 * loss_sum);
  for (int64_t i = 0; i < model.num_blocks(); ++i) {
    for (const model::ParameterSpec& parameter : model.blocks()[i].parameters) {
      const at::Tensor gradient = tensor::view_of(buffers[i].gradients, parameter.offset, parameter.shape);
      const double norm = tensor_of(golden, "grad_norm." + parameter.name).item<double>();
      EXPECT_NEAR(gradient.to(at::kDouble).norm().item<double>(), norm, 1e-4 * norm) << parameter.name;
    }
  }
}

}  // namespace
}  // namespace headrace::checkpoint
