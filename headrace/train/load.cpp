#include "headrace/train/load.h"

#include <ATen/Parallel.h>

#include <utility>

#include "headrace/base/errors.h"
#include "headrace/checkpoint/import.h"
#include "headrace/model/init.h"
#include "headrace/os/cpu_facts.h"
#include "headrace/safetensors/model_folder.h"

namespace headrace::train {
namespace {

LoadedModel allocate(const std::filesystem::path& folder) {
  LoadedModel loaded;
  loaded.model = std::make_unique<const model::Model>(config::ModelShape::load(folder));
  for (const model::BlockSpec& block : loaded.model->blocks()) loaded.weights.push_back(at::zeros({block.numel}));
  return loaded;
}

std::unique_ptr<const tokenizer::ChatTemplate> find_template(const std::filesystem::path& folder,
                                                             const std::string& name, std::string& why_not) {
  if (name != "auto") return std::make_unique<const tokenizer::ChatTemplate>(tokenizer::ChatTemplate::by_name(name));
  try {
    return std::make_unique<const tokenizer::ChatTemplate>(tokenizer::ChatTemplate::recognise(folder));
  } catch (const ConfigError& error) {
    why_not = error.what();
    return nullptr;
  }
}

}  // namespace

std::vector<model::BlockBuffers> LoadedModel::blocks() const {
  std::vector<model::BlockBuffers> buffers;
  for (const at::Tensor& flat : weights) buffers.push_back({flat, {}});
  return buffers;
}

LoadedModel load_pretrained(const std::filesystem::path& folder) {
  LoadedModel loaded = allocate(folder);
  checkpoint::import_weights(safetensors::ModelFolder::open(folder), *loaded.model, loaded.weights);
  return loaded;
}

LoadedModel load_empty(const std::filesystem::path& folder) { return allocate(folder); }

LoadedModel load_random(const std::filesystem::path& folder, uint64_t seed) {
  LoadedModel loaded = allocate(folder);
  for (size_t i = 0; i < loaded.weights.size(); ++i) {
    model::initialize(loaded.model->blocks()[i], seed, loaded.weights[i]);
  }
  return loaded;
}

TextTools::TextTools(const std::filesystem::path& folder, const std::string& chat_template, int64_t model_vocabulary)
    : tokenizer_(std::make_unique<const tokenizer::Tokenizer>(tokenizer::Tokenizer::load(folder))),
      chat_template_(find_template(folder, chat_template, no_template_)) {
  if (tokenizer_->vocabulary_size() > model_vocabulary) {
    throw ConfigError("train.load", folder.string() + ": the tokenizer has " +
                                        std::to_string(tokenizer_->vocabulary_size()) + " ids but the model only " +
                                        std::to_string(model_vocabulary) +
                                        " embedding rows. Use the tokenizer that belongs to the model.");
  }
  codec_ = data::codec_from(*tokenizer_, chat_template_.get());
  if (!chat_template_) {
    codec_.render = [why = no_template_](std::span<const data::Message>) -> data::RenderedChat {
      throw ConfigError("train.load",
                        "these are conversations, but the model folder gives no way to render them: " + why);
    };
  }
}

const tokenizer::ChatTemplate& TextTools::chat_template() const {
  if (!chat_template_) throw ConfigError("train.load", no_template_);
  return *chat_template_;
}

checkpoint::ExportDtype export_dtype(const std::string& word, const std::filesystem::path& folder) {
  if (word != "auto") return checkpoint::parse_export_dtype(word);
  if (!std::filesystem::exists(folder / "model.safetensors") &&
      !std::filesystem::exists(folder / "model.safetensors.index.json")) {
    return checkpoint::ExportDtype::kFloat32;
  }
  const safetensors::ModelFolder weights = safetensors::ModelFolder::open(folder);
  uint64_t half = 0, brain = 0, rest = 0;  // [bytes]
  for (const std::string& name : weights.names()) {
    const safetensors::TensorInfo& info = weights.info(name);
    (info.dtype == safetensors::DType::kF16    ? half
     : info.dtype == safetensors::DType::kBF16 ? brain
                                               : rest) += info.end - info.begin;
  }
  if (rest >= half && rest >= brain) return checkpoint::ExportDtype::kFloat32;
  return half > brain ? checkpoint::ExportDtype::kFloat16 : checkpoint::ExportDtype::kBFloat16;
}

void set_compute_threads(int64_t threads) {
  at::set_num_threads(threads > 0 ? static_cast<int>(threads) : os::allowed_cpus());
}

}  // namespace headrace::train
