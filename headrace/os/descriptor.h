// System calls that continue after interruption and short counts, and the errors they give. For this room.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "headrace/base/errors.h"

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

// The result of `call`, repeated as long as a signal interrupts it.
template <typename Call>
auto uninterrupted(const Call& call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// "[place] <what> <path>: <reason>." For a full disk the hint says how many bytes are free where `path` lies.
IoError io_error(std::string_view place, std::string_view what, const std::filesystem::path& path, int error_number);

// Up to `bytes.size()` bytes; fewer only at the end of the file. `offset` [bytes] is where the descriptor stands, for
// the message. Throws IoError (`place`).
size_t read_fully(std::string_view place, int descriptor, std::span<std::byte> bytes, int64_t offset,
                  const std::filesystem::path& path);

// All of `bytes` at `offset`. Throws IoError (`place`) with both counts.
void write_fully(std::string_view place, int descriptor, std::span<const std::byte> bytes, int64_t offset,
                 const std::filesystem::path& path);

}  // namespace headrace::os
