#include "headrace/os/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace headrace::os {

InputFile::InputFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_("os.read", path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) {
  struct stat facts {};
  if (::fstat(descriptor_.get(), &facts) != 0) throw io_error("os.read", "cannot examine", path_, errno);
  if (!S_ISREG(facts.st_mode)) {
    throw IoError("os.read", "cannot read", path_.native(), EINVAL, "It is not a regular file.");
  }
  size_bytes_ = facts.st_size;
}

size_t InputFile::read(std::span<std::byte> bytes) {
  const size_t got = read_fully("os.read", descriptor_.get(), bytes, offset_, path_);
  offset_ += static_cast<int64_t>(got);
  return got;
}

}  // namespace headrace::os
