#include "headrace/safetensors/model_folder.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <system_error>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/os/file.h"
#include "headrace/safetensors/header_reader.h"

namespace headrace::safetensors {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "safetensors.open";
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr int64_t kMaxIndexBytes = 32 << 20;  // some 300,000 tensors

// Why there is nothing to open, and what would help.
std::string nothing_to_open(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return "there is no folder " + folder.native() + ". Give the path of a Hugging Face model folder.";
  }
  bool has_pickle = false, has_gguf = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().native();
    has_pickle = has_pickle || name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
    has_gguf = has_gguf || name.ends_with(".gguf");
  }
  const std::string none = folder.native() + " holds neither " + std::string(kSingle) + " nor " + std::string(kIndex);
  if (has_pickle) {
    return none +
           ", only pickled weights, which can run code when read and are not supported. Convert them where you "
           "trust them: python -c \"from transformers import AutoModelForCausalLM as M; "
           "M.from_pretrained('DIR').save_pretrained('DIR')\".";
  }
  if (has_gguf) return none + ", only GGUF. Convert it with tools/gguf_to_hf.py.";
  return none + ". Is it a Hugging Face model folder, completely downloaded?";
}

// tensor -> file, in the order of the tensors' names. A JSON object cannot say a name twice here: the last one counts.
std::map<std::string, std::string> read_weight_map(const fs::path& path) {
  const Json index = parse_json(os::read_file(path, kMaxIndexBytes), kPlace, path.native());
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw DataError(kPlace, path.native() + ": has no object \"weight_map\".");
  }
  std::map<std::string, std::string> weight_map;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string()) {
      throw DataError(kPlace, path.native() + ": the file of tensor " + in_quotes(name) + " is not a string.");
    }
    weight_map.emplace(name, file.get<std::string>());
  }
  return weight_map;
}

}  // namespace

ModelFolder ModelFolder::open(const fs::path& folder) {
  ModelFolder model(folder);
  std::error_code error;
  // The order transformers uses.
  if (fs::exists(folder / kSingle, error)) {
    model.add_single();
  } else if (fs::exists(folder / kIndex, error)) {
    model.add_shards();
  } else {
    throw DataError(kPlace, nothing_to_open(folder));
  }
  return model;
}

void ModelFolder::add_single() {
  add_file(std::string(kSingle));
  for (const TensorInfo& tensor : files_[0].tensors()) names_.push_back(tensor.name);
  std::sort(names_.begin(), names_.end());
  for (const std::string& name : names_) places_.push_back({0, files_[0].find(name)});
}

void ModelFolder::add_shards() {
  const auto weight_map = read_weight_map(os::child_of(folder_, kIndex));
  std::map<std::string, size_t> file_numbers;
  for (const auto& [name, file] : weight_map) file_numbers.emplace(file, 0);
  for (auto& [file, number] : file_numbers) {
    number = files_.size();
    add_file(file);
  }
  for (const auto& [name, file] : weight_map) add_tensor(name, file_numbers[file], file);
  std::set<std::string> unlisted;
  for (size_t i = 0; i < files_.size(); ++i) {
    for (const TensorInfo& tensor : files_[i].tensors()) {
      const Place* place = find(tensor.name);
      if (place == nullptr || place->file != i) unlisted.insert(tensor.name);
    }
  }
  unlisted_.assign(unlisted.begin(), unlisted.end());
}

void ModelFolder::add_file(const std::string& name) {
  const fs::path path = os::child_of(folder_, name);
  try {
    files_.push_back(File::open(path));
  } catch (const IoError& error) {
    if (error.error_number() != ENOENT) throw;
    throw DataError(kPlace, "the index of " + folder_.native() + " names the file " + in_quotes(name) +
                                ", which is not there. Is the folder completely downloaded?");
  }
}

void ModelFolder::add_tensor(const std::string& name, size_t file, const std::string& file_name) {
  const TensorInfo* info = files_[file].find(name);
  if (info == nullptr) {
    throw DataError(kPlace, "the index of " + folder_.native() + " puts tensor " + in_quotes(name) + " into " +
                                in_quotes(file_name) + ", which does not hold it.");
  }
  names_.push_back(name);
  places_.push_back({file, info});
}

const ModelFolder::Place* ModelFolder::find(std::string_view name) const {
  const auto found = std::lower_bound(names_.begin(), names_.end(), name);
  if (found == names_.end() || *found != name) return nullptr;
  return &places_[static_cast<size_t>(found - names_.begin())];
}

bool ModelFolder::has(std::string_view name) const { return find(name) != nullptr; }

const TensorInfo& ModelFolder::info(std::string_view name) const {
  const Place* place = find(name);
  if (place == nullptr) {
    throw DataError("safetensors.find", folder_.native() + " holds no tensor " + in_quotes(name) + " among its " +
                                            std::to_string(names_.size()) + ".");
  }
  return *place->info;
}

std::span<const std::byte> ModelFolder::bytes(std::string_view name) const {
  const TensorInfo& tensor = info(name);
  return files_[find(name)->file].bytes(tensor);
}

void ModelFolder::done_with(std::string_view name) const noexcept {
  if (const Place* place = find(name)) files_[place->file].done_with(*place->info);
}

}  // namespace headrace::safetensors
