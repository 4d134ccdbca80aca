// What a model folder gives a command: the model, its weights, its tokenizer. Blocking; one thread.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/checkpoint/export.h"
#include "headrace/data/codec.h"
#include "headrace/model/model.h"
#include "headrace/model/run.h"
#include "headrace/tokenizer/chat_template.h"
#include "headrace/tokenizer/tokenizer.h"

namespace headrace::train {

// A model and one flat fp32 buffer of weights a block.
struct LoadedModel {
  std::unique_ptr<const model::Model> model;  // on the heap: policies refer to it
  std::vector<at::Tensor> weights;

  // For inference: the weights without gradients.
  std::vector<model::BlockBuffers> blocks() const;
};

// Reads config.json and the safetensors of `folder`. Throws DataError or IoError.
LoadedModel load_pretrained(const std::filesystem::path& folder);
// Reads config.json alone; the weights are zeros that take no memory until they are written.
LoadedModel load_empty(const std::filesystem::path& folder);
// Reads config.json alone and draws the weights from `seed`.
LoadedModel load_random(const std::filesystem::path& folder, uint64_t seed);

// Tokenizer and chat template of a model folder. Movable; the codec refers to what the object owns on the heap.
class TextTools {
 public:
  // `chat_template`: a template's name, or "auto" to recognise the folder's. A folder without a known template can
  // still read everything but conversations. `model_vocabulary`: embedding rows; a tokenizer with larger ids is refused
  // with a ConfigError.
  TextTools(const std::filesystem::path& folder, const std::string& chat_template, int64_t model_vocabulary);

  const tokenizer::Tokenizer& tokenizer() const { return *tokenizer_; }
  // Throws the ConfigError that says why there is none.
  const tokenizer::ChatTemplate& chat_template() const;
  const data::Codec& codec() const { return codec_; }

 private:
  std::unique_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::string no_template_;  // why there is no template; before chat_template_, whose search sets it
  std::unique_ptr<const tokenizer::ChatTemplate> chat_template_;
  data::Codec codec_;
};

// "fp32", "bf16", "fp16"; "auto" is what most bytes of the folder's weights are stored as, fp32 without weights.
checkpoint::ExportDtype export_dtype(const std::string& word, const std::filesystem::path& folder);

// Sets libtorch's threads once for the process: 0 means every core this process may use.
void set_compute_threads(int64_t threads);

}  // namespace headrace::train
