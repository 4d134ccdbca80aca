#include "headrace/train/offload_bench_workload.h"

#include <ATen/ops/zeros.h>

#include "headrace/base/rng.h"
#include "headrace/config/model_shape.h"
#include "headrace/device/cores.h"
#include "headrace/device/emulated.h"
#include "headrace/model/init.h"
#include "headrace/os/affinity.h"
#include "headrace/train/load.h"

namespace headrace::train {
namespace {

constexpr uint64_t kSeed = 1;

// 125M parameters in many equal layers: what no executor can hide is then small (one block's work, and the head's), as it
// is in large models. No block holds over 3 %.
constexpr const char* kShapeName = "Llama shape of 125M parameters, 64 layers";
constexpr const char* kShape = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 8192, "hidden_size": 384,
  "intermediate_size": 1152, "num_hidden_layers": 64, "num_attention_heads": 6, "num_key_value_heads": 6,
  "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true,
  "rope_theta": 10000.0, "initializer_range": 0.02, "bos_token_id": 1, "eos_token_id": 2})";

config::ModelShape shape_of(const OffloadBenchSettings& settings) {
  return settings.model.empty() ? config::ModelShape::parse(kShape, "the bench's model")
                                : config::ModelShape::load(settings.model);
}

model::Batch random_document(int64_t tokens, int64_t vocabulary) {
  Rng rng(kSeed);
  std::vector<std::vector<int64_t>> documents(1);
  for (int64_t i = 0; i < tokens; ++i) {
    documents[0].push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(vocabulary))));
  }
  return model::pack(documents, documents);
}

}  // namespace

BenchWorkload::BenchWorkload(const OffloadBenchSettings& settings)
    : allowed_(os::allowed_cores()),
      cores_(device::split(allowed_)),
      name_(settings.model.empty() ? kShapeName : settings.model.filename().string()),
      model_(shape_of(settings)) {
  os::pin_this_thread(cores_.compute);
  set_compute_threads(static_cast<int64_t>(cores_.compute.size()));
  for (const model::BlockSpec& block : model_.blocks()) {
    weights_.push_back(at::zeros({block.numel}));
    model::initialize(block, kSeed, weights_.back());
  }
  micro_batches_.push_back(random_document(settings.tokens, model_.shape().vocab_size));
}

BenchWorkload::~BenchWorkload() { os::pin_this_thread(allowed_); }

int64_t BenchWorkload::numel(int32_t first_block) const {
  int64_t numel = 0;
  for (auto i = static_cast<size_t>(first_block); i < weights_.size(); ++i) numel += weights_[i].numel();
  return numel;
}

// The device is asked for cores that this thread may not run on while it is the compute lane.
std::unique_ptr<device::Device> BenchWorkload::make_device(const device::Rate& link) const {
  os::pin_this_thread(allowed_);
  auto device = device::make_emulated_device({.cores = cores_, .to_device = link, .to_host = link});
  os::pin_this_thread(cores_.compute);
  return device;
}

}  // namespace headrace::train
