// A golden of tests/golden/model in memory: the model, its weights in flat buffers, the batch and what transformers
// says.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "headrace/model/block.h"
#include "headrace/model/run.h"
#include "headrace/safetensors/file.h"
#include "headrace/tensor/flat.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {

inline constexpr const char* kFamilies[] = {"gpt2",    "opt",   "llama2", "llama3", "llama_linear",
                                            "mistral", "qwen2", "qwen3",  "smollm2"};

inline at::Tensor tensor_of(const safetensors::File& file, const std::string& name) {
  const safetensors::TensorInfo* info = file.find(name);
  if (info == nullptr) throw std::runtime_error("the golden has no " + name);
  const bool is_float = info->dtype == safetensors::DType::kF32;
  at::Tensor tensor = at::empty(info->shape, is_float ? at::kFloat : at::kLong);
  const auto bytes = file.bytes(*info);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

struct GoldenCase {
  explicit GoldenCase(const std::string& family)
      : folder(std::filesystem::path(HEADRACE_SOURCE_DIR) / "tests/golden/model" / family),
        model(config::ModelShape::load(folder)),
        golden(safetensors::File::open(folder / "golden.safetensors")) {
    at::set_num_threads(2);
    const safetensors::File weights = safetensors::File::open(folder / "model.safetensors");
    for (const BlockSpec& block : model.blocks()) {
      buffers.push_back({at::zeros({block.numel}), at::zeros({block.numel})});
      for (const ParameterSpec& parameter : block.parameters) {
        tensor::view_of(buffers.back().weights, parameter.offset, parameter.shape)
            .copy_(tensor_of(weights, parameter.name));
      }
    }
    const at::Tensor starts = tensor_of(golden, "starts");
    batch.ids_N = tensor_of(golden, "ids");
    batch.positions_N = tensor_of(golden, "positions");
    batch.targets_N = tensor_of(golden, "targets");
    batch.document_starts.assign(starts.const_data_ptr<int64_t>(), starts.const_data_ptr<int64_t>() + starts.numel());
  }

  // Weights, gradients and batch to another type or device.
  void move_to(const at::TensorOptions& options) {
    for (BlockBuffers& block : buffers) block = {block.weights.to(options), block.gradients.to(options)};
    batch = to_device(batch, options.device());
  }

  std::filesystem::path folder;
  Model model;
  safetensors::File golden;
  std::vector<BlockBuffers> buffers;
  Batch batch;
};

inline at::Tensor all_logits(const GoldenCase& c, const Batch& batch) {
  return logits(c.model, c.buffers.back(), c.buffers[0], forward_all(c.model, c.buffers, batch));
}

// Forward and backward of the whole model, gradients added into the buffers.
inline LossResult train_pass(const Model& model, const std::vector<BlockBuffers>& buffers, const Batch& batch,
                             float grad_scale, Keep keep) {
  std::vector<BlockTape> tapes;
  at::Tensor x_NC;
  for (int64_t i = 0; i < model.head_index(); ++i) {
    tapes.push_back(forward_block(model, i, buffers[i], x_NC, batch, keep));
    x_NC = tapes.back().output_NC;
  }
  LossResult result = loss_forward_backward(model, buffers.back(), buffers[0], x_NC, batch, grad_scale);
  at::Tensor grad_NC = result.grad_x_NC;
  for (int64_t i = model.head_index() - 1; i >= 0; --i) {
    grad_NC = backward_block(model, buffers[i], std::move(tapes[i]), grad_NC, batch);
  }
  return result;
}

inline void zero_gradients(GoldenCase& c) {
  for (BlockBuffers& buffers : c.buffers) buffers.gradients.zero_();
}

inline std::vector<at::Tensor> copy_gradients(const GoldenCase& c) {
  std::vector<at::Tensor> copies;
  for (const BlockBuffers& buffers : c.buffers) copies.push_back(buffers.gradients.clone());
  return copies;
}

// Documents `first` to `last` (excluded) as a batch of their own.
inline Batch documents_of(const Batch& batch, int64_t first, int64_t last) {
  const int64_t begin = batch.document_starts[first], end = batch.document_starts[last];
  Batch part{batch.ids_N.slice(0, begin, end),
             batch.positions_N.slice(0, begin, end),
             batch.targets_N.slice(0, begin, end),
             {}};
  for (int64_t d = first; d <= last; ++d) part.document_starts.push_back(batch.document_starts[d] - begin);
  return part;
}

// ||a - b|| / ||b||.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).to(at::kDouble).norm() / b.to(at::kDouble).norm().clamp_min(1e-12)).item<double>();
}

}  // namespace headrace::model
