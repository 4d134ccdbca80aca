#include "headrace/checkpoint/import.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/safetensors/model_folder.h"
#include "headrace/tensor/dtype.h"
#include "headrace/tensor/flat.h"
#include "headrace/tensor/torch.h"

namespace headrace::checkpoint {
namespace {

using model::ParameterSpec;
using safetensors::ModelFolder;
using safetensors::TensorInfo;

constexpr size_t kMaxListed = 20;            // names in an error: a hostile folder may hold a million
constexpr int64_t kChunkElements = 1 << 20;  // converted at a time
constexpr const char* kTiedHead = "lm_head.weight";

struct Target {
  const ParameterSpec* parameter;
  int64_t block;
  std::string source;  // name in the folder; empty until found
};
using Targets = std::map<std::string, Target, std::less<>>;

// Everything that is wrong with a folder, told at once.
class Complaints {
 public:
  void add(const char* kind, const std::string& what) {
    std::vector<std::string>& list = lists_[kind];
    if (list.size() <= kMaxListed) list.push_back(what);
    ++counts_[kind];
  }
  void throw_if_any(const std::filesystem::path& folder) const {
    if (lists_.empty()) return;
    std::string text = folder.string() + " does not hold this model:";
    for (const auto& [kind, list] : lists_) {
      text.append(" ").append(std::to_string(counts_.at(kind))).append(" ").append(kind).append(":");
      for (size_t i = 0; i < std::min(list.size(), kMaxListed); ++i) text += (i == 0 ? " " : ", ") + list[i];
      text += list.size() > kMaxListed ? ", ...;" : ";";
    }
    text.back() = '.';
    throw DataError("checkpoint.import", text + " Does config.json belong to these weights?");
  }

 private:
  std::map<std::string, std::vector<std::string>> lists_;
  std::map<std::string, int64_t> counts_;
};

// A name from a stranger's file, fit for a message.
std::string quoted(const std::string& name) {
  std::string text = "\"";
  text.append(name, 0, 120);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return text.append(name.size() > 120 ? "...\"" : "\"");
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < std::min<size_t>(shape.size(), 8); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() > 8 ? ", ...]" : "]");
}

Targets targets_of(const model::Model& model) {
  Targets targets;
  for (int64_t i = 0; i < model.num_blocks(); ++i) {
    for (const ParameterSpec& parameter : model.blocks()[i].parameters) {
      targets.emplace(parameter.name, Target{&parameter, i, ""});
    }
  }
  return targets;
}

// Buffers that old versions of transformers saved: rotary frequencies follow from the config, masks from causality.
bool is_ignorable(const std::string& name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

// A folder saved from the bare decoder leaves out the name of the member that holds it.
Targets::iterator find_target(Targets& targets, const std::string& name) {
  auto found = targets.find(name);
  for (const char* prefix : {"model.", "transformer."}) {
    if (found == targets.end()) found = targets.find(prefix + name);
  }
  return found;
}

bool is_float(safetensors::DType dtype) {
  return dtype == safetensors::DType::kF32 || dtype == safetensors::DType::kF16 || dtype == safetensors::DType::kBF16;
}

void assign(const ModelFolder& folder, const std::string& name, Target& target, Complaints& complaints) {
  const TensorInfo& info = folder.info(name);
  if (!target.source.empty()) {
    complaints.add("unexpected", quoted(name) + " (a second " + target.parameter->name + ")");
  } else if (info.shape != target.parameter->shape) {
    complaints.add("mis-shaped",
                   quoted(name) + " is " + text_of(info.shape) + " and must be " + text_of(target.parameter->shape));
  } else if (!is_float(info.dtype)) {
    complaints.add("of an unsupported type",
                   quoted(name) + " is " + std::string(safetensors::name_of(info.dtype)) + ", not F32, F16 or BF16");
  }
  target.source = name;
}

// transformers would load a head that contradicts its tie in ways that differ by version: refuse instead.
void check_tied_head(const ModelFolder& folder, const Targets& targets, Complaints& complaints) {
  for (const auto& [name, target] : targets) {
    if (target.parameter->role != model::Role::kTokenEmbedding || target.source.empty()) continue;
    const auto head = folder.bytes(kTiedHead), embedding = folder.bytes(target.source);
    if (!std::ranges::equal(head, embedding)) {
      std::string text(kTiedHead);
      text.append(" (config.json ties it to ").append(target.source).append(", and they differ)");
      complaints.add("unexpected", text);
    }
  }
}

Targets match(const ModelFolder& folder, const model::Model& model) {
  Targets targets = targets_of(model);
  Complaints complaints;
  for (const std::string& name : folder.names()) {
    if (is_ignorable(name) || (name == kTiedHead && model.shape().is_tied)) continue;
    const auto found = find_target(targets, name);
    if (found == targets.end())
      complaints.add("unexpected", quoted(name));
    else
      assign(folder, name, found->second, complaints);
  }
  if (model.shape().is_tied && folder.has(kTiedHead)) check_tied_head(folder, targets, complaints);
  for (const auto& [name, target] : targets) {
    if (target.source.empty()) complaints.add("missing", name);
  }
  complaints.throw_if_any(folder.folder());
  return targets;
}

// Bytes of the file may lie at any address, so they are copied before they are read as numbers.
void convert(std::span<const std::byte> bytes, at::ScalarType type, float* to, int64_t numel) {
  if (type == at::kFloat) {
    std::memcpy(to, bytes.data(), bytes.size());
    return;
  }
  const at::Tensor chunk = at::empty({std::min(kChunkElements, numel)}, type);
  for (int64_t begin = 0; begin < numel; begin += kChunkElements) {
    const int64_t count = std::min(kChunkElements, numel - begin);
    std::memcpy(chunk.mutable_data_ptr(), bytes.data() + begin * 2, static_cast<size_t>(count) * 2);
    at::from_blob(to + begin, {count}, at::kFloat).copy_(chunk.narrow(0, 0, count));
  }
}

}  // namespace

void import_weights(const safetensors::ModelFolder& folder, const model::Model& model,
                    std::span<at::Tensor> flat_weights) {
  const Targets targets = match(folder, model);
  if (std::ssize(flat_weights) != model.num_blocks()) {
    throw InternalError("checkpoint.import", std::to_string(flat_weights.size()) + " buffers for " +
                                                 std::to_string(model.num_blocks()) + " blocks.");
  }
  for (at::Tensor& flat : flat_weights) flat.zero_();
  for (const auto& [name, target] : targets) {
    const at::Tensor view =
        tensor::view_of(flat_weights[target.block], target.parameter->offset, target.parameter->shape);
    const at::ScalarType type = tensor::scalar_type_of(folder.info(target.source).dtype).value();
    convert(folder.bytes(target.source), type, view.mutable_data_ptr<float>(), target.parameter->numel);
    folder.done_with(target.source);
  }
}

}  // namespace headrace::checkpoint
