// System calls that continue after interruption and short counts, and the errors they give. For this room's sources.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace headrace::os {

// Owns a file descriptor. Move it out with release().
class Descriptor {
 public:
  // As ::open with O_CLOEXEC. Throws IoError (`place`) with the path.
  Descriptor(std::string_view place, const std::filesystem::path& path, int flags, unsigned mode = 0);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return descriptor_; }
  int release();

 private:
  int descriptor_;
};

// Up to `length` bytes; fewer only at the end of the file. Throws IoError with the offset.
size_t read_fully(int descriptor, char* bytes, size_t length, int64_t offset, const std::filesystem::path& path);

}  // namespace headrace::os
