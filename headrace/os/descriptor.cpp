#include "headrace/os/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::os {

Descriptor::Descriptor(std::string_view place, const std::filesystem::path& path, int flags, unsigned mode) {
  do {
    descriptor_ = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw IoError(place, "cannot open", path.native(), errno);
}

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int Descriptor::release() { return std::exchange(descriptor_, -1); }

size_t read_fully(int descriptor, char* bytes, size_t length, int64_t offset, const std::filesystem::path& path) {
  size_t done = 0;
  while (done < length) {
    const ssize_t got = ::read(descriptor, bytes + done, length - done);
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      const std::string where = "cannot read at offset " + std::to_string(offset + static_cast<int64_t>(done)) + " of";
      throw IoError("os.read", where, path.native(), errno);
    }
  }
  return done;
}

}  // namespace headrace::os
