// A regular file read from its start to its end without being mapped: a bad disk is an error here, where a mapping
// would kill the process with SIGBUS. Move-free, one owner, blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "headrace/os/descriptor.h"

namespace headrace::os {

class InputFile {
 public:
  // Throws IoError (place "os.read") when there is no such file (ENOENT), when it is a link (ELOOP) or a folder, pipe
  // or device (EINVAL), or when it cannot be opened. Never waits for the writer of a pipe.
  explicit InputFile(std::filesystem::path path);

  // When it was opened.
  int64_t size_bytes() const { return size_bytes_; }
  // The next bytes: as many as fit, fewer only at the end of the file. Throws IoError with the offset.
  size_t read(std::span<std::byte> bytes);

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  int64_t size_bytes_ = 0;
  int64_t offset_ = 0;
};

}  // namespace headrace::os
