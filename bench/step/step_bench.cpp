// step_bench MODEL_FOLDER BATCHES.json THREADS: our side of bench/step/run.py. Answers each line of standard input with
// one line of JSON, and sleeps in between, so that both sides are timed in turn on the same cores:
//   step I    one optimizer step (clip 1, AdamW) on batch I: seconds, loss, trained tokens, time by phase
//   block R   forward and backward of layer 1 on batch 0 and a square matrix product, R times in turn: best of each
//   memory    peak and what it is made of [bytes]
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "headrace/checkpoint/import.h"
#include "headrace/model/linear_cross_entropy.h"
#include "headrace/os/memory_facts.h"
#include "headrace/policy/resident.h"
#include "headrace/safetensors/model_folder.h"
#include "headrace/tensor/torch.h"

namespace {

using headrace::model::Batch;
using headrace::model::BlockTape;
using nlohmann::json;

double seconds_of(const auto& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Batch> read_batches(const char* path) {
  std::vector<Batch> batches;
  for (const json& batch : json::parse(std::ifstream(path))) {
    const auto documents = batch.at("documents").get<std::vector<std::vector<int64_t>>>();
    const auto labels = batch.at("labels").get<std::vector<std::vector<int64_t>>>();
    batches.push_back(headrace::model::pack(documents, labels));
  }
  return batches;
}

// Floating-point operations of forward and backward of one layer: those of its matrices, and those of attention
// counting only what a causal document needs (two products forward, four backward).
json block_operations(const headrace::model::Model& model, const Batch& batch) {
  int64_t matrix_elements = 0;
  for (const auto& parameter : model.blocks()[1].parameters) {
    if (parameter.decays) matrix_elements += parameter.numel;
  }
  double pairs = 0;
  for (int64_t d = 0; d < batch.num_documents(); ++d) {
    const auto tokens = static_cast<double>(batch.document_starts[d + 1] - batch.document_starts[d]);
    pairs += tokens * (tokens + 1) / 2;
  }
  const auto width = static_cast<double>(model.shape().num_heads * model.shape().head_dim);
  return {{"matrices", 6.0 * static_cast<double>(matrix_elements) * static_cast<double>(batch.num_tokens())},
          {"attention", 12.0 * pairs * width}};
}

class Bench {
 public:
  Bench(const char* folder, const char* batches)
      : program_bytes_(headrace::os::memory_facts().resident_bytes),
        model_(headrace::config::ModelShape::load(folder)),
        batches_(read_batches(batches)) {
    std::vector<at::Tensor> weights;
    for (const auto& block : model_.blocks()) weights.push_back(at::zeros({block.numel}));
    headrace::checkpoint::import_weights(headrace::safetensors::ModelFolder::open(folder), model_, weights);
    headrace::policy::Resident::Settings settings;
    settings.optimizer = {.weight_decay = 0.01, .clip = 1};
    policy_.emplace(model_, std::move(weights), settings);
  }

  json answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    int64_t number = 0;
    words >> verb >> number;
    if (verb == "step") return step(static_cast<size_t>(number));
    if (verb == "block") return block(number);
    if (verb == "memory") return memory();
    return {{"error", "unknown command: " + line}};
  }

 private:
  json step(size_t index) {
    headrace::policy::StepResult result;
    const std::clock_t processor = std::clock();  // of all threads
    const double seconds = seconds_of([&] {
      result = policy_->step({.step = steps_++, .micro_batches = {&batches_.at(index), 1}, .learning_rate = 1e-5});
    });
    const double cpu_seconds = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
    return {{"seconds", seconds},
            {"cpu_seconds", cpu_seconds},
            {"loss", result.loss()},
            {"trained", result.trained_tokens},
            {"norm", result.gradient_norm},
            {"forward_s", result.forward_s},
            {"backward_s", result.backward_s},
            {"update_s", result.update_s}};
  }

  json block(int64_t repeats) {
    const auto& model = model_;
    const Batch& batch = batches_.at(0);
    const auto& buffers = policy_->blocks()[1];
    const at::Tensor x = at::randn({batch.num_tokens(), model.shape().hidden_size}), grad = at::randn_like(x);
    const int64_t size = 2048;
    const at::Tensor a = at::randn({size, size}), b = at::randn({size, size});
    at::Tensor c = at::empty({size, size});
    std::vector<double> forward, backward, product;
    for (int64_t i = 0; i <= repeats; ++i) {  // the first round warms up
      BlockTape tape;
      forward.push_back(seconds_of(
          [&] { tape = headrace::model::forward_block(model, 1, buffers, x, batch, headrace::model::Keep::kAll); }));
      backward.push_back(
          seconds_of([&] { headrace::model::backward_block(model, buffers, std::move(tape), grad, batch); }));
      product.push_back(seconds_of([&] { at::mm_out(c, a, b); }));
    }
    json result = {{"operations", block_operations(model, batch)}, {"tokens", batch.num_tokens()}};
    result["product_operations"] = 2.0 * size * size * size;
    result["forward_s"] = std::vector<double>(forward.begin() + 1, forward.end());
    result["backward_s"] = std::vector<double>(backward.begin() + 1, backward.end());
    result["product_s"] = std::vector<double>(product.begin() + 1, product.end());
    return result;
  }

  // Activations as the layers keep them (model/layer.h, LayerTape), the residual stream, and the loss's chunk.
  double activation_bytes() const {
    const auto& shape = model_.shape();
    double most = 0;
    for (const Batch& batch : batches_) {
      const auto tokens = static_cast<double>(batch.num_tokens());
      const double heads = static_cast<double>(shape.num_heads * shape.head_dim);
      const double joint = heads + 2.0 * static_cast<double>(shape.num_kv_heads * shape.head_dim);
      const double norm_numbers = shape.has_rms_norm() ? 1 : 2;
      const double feed_forward = static_cast<double>(shape.intermediate_size) * (shape.has_rms_norm() ? 2 : 1);
      const double of_layer = 2.0 * static_cast<double>(shape.hidden_size) + joint + heads +
                              static_cast<double>(shape.num_heads) + 2 * norm_numbers + feed_forward;
      most = std::max(most, 4 * tokens * of_layer * static_cast<double>(shape.num_layers));
    }
    return most + static_cast<double>(headrace::model::kLogitsBytes);
  }

  json memory() const {
    double weights = 0;
    for (const auto& block : model_.blocks()) weights += 4.0 * static_cast<double>(block.numel);
    return {{"peak", headrace::os::memory_facts().peak_resident_bytes},
            {"weights", weights},
            {"gradients", weights},
            {"moments", 8.0 * static_cast<double>(policy_->state_numel())},
            {"activations", activation_bytes()},
            {"program", program_bytes_}};
  }

  int64_t program_bytes_;  // resident before anything of the model was read
  headrace::model::Model model_;
  std::vector<Batch> batches_;
  std::optional<headrace::policy::Resident> policy_;
  int64_t steps_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "use: step_bench MODEL_FOLDER BATCHES.json THREADS\n");
    return 2;
  }
  at::set_num_threads(std::stoi(argv[3]));
  Bench bench(argv[1], argv[2]);
  std::cout << json{{"ready", true}}.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) std::cout << bench.answer(line).dump() << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "step_bench: %s\n", error.what());
  return 1;
}
