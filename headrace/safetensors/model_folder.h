// The weights of a Hugging Face model folder as one set of named tensors, from one file or many shards.
// Move-only; any thread may read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/safetensors/file.h"

namespace headrace::safetensors {

class ModelFolder {
 public:
  // Opens `model.safetensors`, or else the shards that `model.safetensors.index.json` names. Every header is checked
  // and every tensor of the index must exist in its shard. Throws DataError (place "safetensors.open") for anything
  // wrong, for a shard outside the folder, and when there are no such files, with a hint for folders that hold pickles
  // or GGUF only (a pickle is never read). Throws IoError when a file cannot be mapped.
  static ModelFolder open(const std::filesystem::path& folder);

  // Sorted by name.
  const std::vector<std::string>& names() const { return names_; }
  bool has(std::string_view name) const;
  // Both throw DataError naming the tensor and the folder when there is no such tensor.
  const TensorInfo& info(std::string_view name) const;
  std::span<const std::byte> bytes(std::string_view name) const;
  // Lets the system drop the tensor's pages from memory. Unknown names are ignored.
  void done_with(std::string_view name) const noexcept;

  // Tensors that lie in shards but that the index does not name (harmless, worth a message), sorted.
  const std::vector<std::string>& unlisted() const { return unlisted_; }
  const std::vector<File>& files() const { return files_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  struct Place {
    size_t file;
    const TensorInfo* info;  // in files_[file], whose tensors stay where they are when the File moves
  };

  explicit ModelFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void add_single();
  void add_shards();
  void add_file(const std::string& name);
  void add_tensor(const std::string& name, size_t file, const std::string& file_name);
  const Place* find(std::string_view name) const;
  const Place& place_of(std::string_view name) const;

  std::filesystem::path folder_;
  std::vector<File> files_;
  std::vector<std::string> names_, unlisted_;
  std::vector<Place> places_;  // parallel to names_
};

}  // namespace headrace::safetensors
