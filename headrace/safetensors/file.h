// One safetensors file, mapped for reading: tensors are views into the mapping, nothing is copied. Move-only; any
// thread may read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/os/mapped_file.h"
#include "headrace/safetensors/header.h"

namespace headrace::safetensors {

class File {
 public:
  // Maps the file and checks its header. Throws IoError when it cannot be mapped, DataError as parse_header does.
  static File open(const std::filesystem::path& path);

  // In the order of their data.
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  // Null when there is no such tensor. Lives as long as the File.
  const TensorInfo* find(std::string_view name) const;
  // The bytes of a tensor of this file: little-endian, row-major, aligned to nothing (copy with memcpy).
  std::span<const std::byte> bytes(const TensorInfo& info) const;
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::filesystem::path& path() const { return mapping_.path(); }
  // Lets the system drop a tensor's pages from memory: for loading large models with little of it.
  void done_with(const TensorInfo& info) const noexcept;

 private:
  File(os::MappedFile mapping, Header header);

  os::MappedFile mapping_;
  Header header_;
  std::vector<size_t> by_name_;  // positions in tensors(), sorted by name: no hash that a file could make collide
};

}  // namespace headrace::safetensors
