// Step time, stall and bytes of every policy on a device, for a Llama shape of 340M parameters in fp32. Prints JSON.
// `policy_bench cuda [layers] [tokens a document]`; `emulated 1 8` shows what the program itself does.
#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu/row.h"
#include "headrace/base/rng.h"
#include "headrace/device/cuda.h"
#include "headrace/device/emulated.h"
#include "headrace/model/init.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/resident.h"
#include "headrace/policy/zenflow/zenflow.h"

namespace headrace {
namespace {

constexpr int kRepeats = 8;
constexpr int64_t kDocuments = 8, kVocabulary = 32000;
constexpr policy::OptimizerSettings kAdamW{.weight_decay = 0.1, .clip = 1};

config::ModelShape shape_of(int64_t layers) {
  const Json config = {{"architectures", {"LlamaForCausalLM"}},
                       {"model_type", "llama"},
                       {"vocab_size", kVocabulary},
                       {"hidden_size", 1024},
                       {"intermediate_size", 2816},
                       {"num_hidden_layers", layers},
                       {"num_attention_heads", 16},
                       {"num_key_value_heads", 16},
                       {"max_position_embeddings", 4096},
                       {"rms_norm_eps", 1e-5},
                       {"hidden_act", "silu"},
                       {"tie_word_embeddings", true},
                       {"rope_theta", 10000.0}};
  return config::ModelShape::parse(config.dump(), "the bench's model");
}

model::Batch random_batch(int64_t tokens) {
  Rng rng(1);
  std::vector<std::vector<int64_t>> documents(kDocuments);
  for (auto& document : documents) {
    for (int64_t i = 0; i < tokens; ++i) document.push_back(static_cast<int64_t>(rng.below(kVocabulary)));
  }
  return model::pack(documents, documents);
}

class Bench {
 public:
  Bench(std::string device, int64_t layers, int64_t tokens) : device_(std::move(device)), model_(shape_of(layers)) {
    batches_.push_back(random_batch(tokens));
    workers_ = static_cast<int32_t>(std::max<size_t>(1, open()->cores().host.size()));
    for (const model::BlockSpec& block : model_.blocks()) {
      weights_.push_back(at::zeros({block.numel}));
      model::initialize(block, 1, weights_.back());
    }
  }

  Json run() {
    measure("resident", [&] {
      std::vector<at::Tensor> weights;
      for (const at::Tensor& block : weights_) weights.push_back(block.clone());
      return std::make_unique<policy::Resident>(model_, std::move(weights), policy::Resident::Settings{kAdamW}, open());
    });
    for (const auto overlap : {policy::Overlap::kNone, policy::Overlap::kExact}) {
      measure(overlap == policy::Overlap::kNone ? "offload, no overlap" : "offload, exact overlap", [&] {
        return std::make_unique<policy::Offload>(
            model_, open(), weights_,
            policy::OffloadSettings{.optimizer = kAdamW, .overlap = overlap, .host_workers = workers_});
      });
    }
    policy::ZenFlowSettings settings{.optimizer = kAdamW};
    settings.topk_ratio = 0.1;
    settings.schedule = {.update_interval = 4, .warmup_steps = 1, .select_interval = 16, .overlaps = true};
    settings.host_workers = workers_;
    measure("zenflow, k 0.1, S 4",
            [&] { return std::make_unique<policy::ZenFlow>(model_, open(), weights_, settings); });
    return {{"device", device_},
            {"parameters", model_.num_parameters()},
            {"tokens", batches_.front().num_tokens()},
            {"rows", rows_}};
  }

 private:
  std::unique_ptr<device::Device> open() const {
    if (device_ == "cuda") return device::cuda::make_device({});
    return device::make_emulated_device({});
  }

  void measure(const std::string& name, const std::function<std::unique_ptr<policy::Policy>()>& make) {
    const std::unique_ptr<policy::Policy> policy = make();
    std::vector<double> seconds, stalls;
    for (int64_t step = -2; step < kRepeats; ++step) {  // the first two touch memory for the first time
      const auto begin = std::chrono::steady_clock::now();
      const policy::StepResult result = policy->step({step + 2, batches_, 1e-4});
      const double step_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (step < 0) continue;
      seconds.push_back(step_s);
      stalls.push_back(100 * result.stall_s / step_s);
    }
    policy->finish_training();
    rows_.push_back(row(name + ": step", "s", std::move(seconds)));
    rows_.push_back(row(name + ": stall", "% of a step", std::move(stalls)));
    const OrderedJson report = policy->report();
    if (!report.contains("lane_bytes")) return;
    for (const char* lane : {"d2h", "h2d"}) {
      const double bytes = report.at("lane_bytes").at(lane).get<double>() / (kRepeats + 2);
      rows_.push_back(row(name + ": " + lane, "MB a step", {bytes / 1e6}));
    }
  }

  const std::string device_;
  const model::Model model_;
  std::vector<model::Batch> batches_;
  std::vector<at::Tensor> weights_;
  int32_t workers_ = 1;  // one a host core
  Json rows_ = Json::array();
};

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  try {
    headrace::Bench bench(argc > 1 ? argv[1] : "cuda", argc > 2 ? std::stoll(argv[2]) : 24,
                          argc > 3 ? std::stoll(argv[3]) : 1024);
    std::cout << bench.run().dump(2) << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
