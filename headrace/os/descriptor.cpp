#include "headrace/os/descriptor.h"

#include <string>
#include <utility>

#include "headrace/base/units.h"
#include "headrace/os/file.h"
#include "headrace/os/file_system.h"

namespace headrace::os {

Descriptor::Descriptor(std::string_view place, const std::filesystem::path& path, int flags, unsigned mode)
    : descriptor_(uninterrupted([&] { return file_system().open(path, flags, mode); })) {
  if (descriptor_ < 0) throw io_error(place, "cannot open", path, errno);
}

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) file_system().close(descriptor_);
}

int Descriptor::release() { return std::exchange(descriptor_, -1); }

IoError io_error(std::string_view place, std::string_view what, const std::filesystem::path& path, int error_number) {
  if (error_number != ENOSPC && error_number != EDQUOT) return {place, what, path.native(), error_number};
  std::string free = "an unknown number of bytes";
  try {
    free = format_bytes(free_bytes(path));
  } catch (const Error&) {
    // the message matters more than this number
  }
  return {place, what, path.native(), error_number,
          "Its disk has " + free + " free for us. Free space there or choose another folder."};
}

size_t read_fully(std::string_view place, int descriptor, std::span<std::byte> bytes, int64_t offset,
                  const std::filesystem::path& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const int64_t got = uninterrupted([&] { return file_system().read(descriptor, bytes.subspan(done)); });
    if (got == 0) break;
    if (got < 0) {
      const std::string where = "cannot read at offset " + std::to_string(offset + static_cast<int64_t>(done)) + " of";
      throw io_error(place, where, path, errno);
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

void write_fully(std::string_view place, int descriptor, std::span<const std::byte> bytes, int64_t offset,
                 const std::filesystem::path& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const auto rest = bytes.subspan(done);
    const int64_t at = offset + static_cast<int64_t>(done);
    const int64_t wrote = uninterrupted([&] { return file_system().write_at(descriptor, rest, at); });
    if (wrote > 0) {
      done += static_cast<size_t>(wrote);
      continue;
    }
    // POSIX allows 0 only for empty writes; a file system that returns it anyway must not make us spin.
    const int error = wrote == 0 ? EIO : errno;
    const std::string what = "wrote " + std::to_string(done) + " of " + std::to_string(bytes.size()) +
                             " bytes at offset " + std::to_string(offset) + " of";
    throw io_error(place, what, path, error);
  }
}

}  // namespace headrace::os
