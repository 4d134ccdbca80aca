// One checkpoint opened for reading: its state, and its tensors by name as views into mapped files, so that nothing is
// held in memory that is not looked at. Move-only; any thread may read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/safetensors/file.h"
#include "headrace/store/list.h"

namespace headrace::store {

class CheckpointReader {
 public:
  // Opens what list_checkpoints or find_newest_verified gave. Sizes and headers are checked, hashes are not: verify()
  // does that. Throws DataError (place "store.open" or "safetensors.open") for a damaged checkpoint, for a tensor in
  // two files and for a state.json over kMaxStateBytes; IoError. A file cut short while mapped kills us with SIGBUS.
  static CheckpointReader open(const CheckpointInfo& info);

  int64_t step() const { return step_; }
  const Json& state() const { return state_; }
  // Sorted.
  const std::vector<std::string>& names() const { return names_; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Both throw DataError naming the tensor and the folder when there is no such tensor. The view lives as long as the
  // reader; aligned to the element only within the file, so copy with memcpy.
  const safetensors::TensorInfo& info(std::string_view name) const;
  std::span<const std::byte> bytes(std::string_view name) const;
  // Lets the system drop the tensor's pages from memory. Unknown names are ignored.
  void done_with(std::string_view name) const noexcept;

 private:
  struct Place {
    size_t file;
    const safetensors::TensorInfo* info;  // in files_[file], whose tensors stay where they are when the File moves
  };

  CheckpointReader() = default;
  void index();
  const Place* find(std::string_view name) const;
  const Place& place_of(std::string_view name) const;

  std::filesystem::path folder_;
  int64_t step_ = 0;
  Json state_;
  std::vector<safetensors::File> files_;
  std::vector<std::string> names_;
  std::vector<Place> places_;  // parallel to names_
};

}  // namespace headrace::store
