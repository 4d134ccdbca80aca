#include "headrace/os/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/os/descriptor.h"

namespace headrace::os {

OutputFile::OutputFile(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  const int flags = O_WRONLY | O_CREAT | (mode == Mode::kCreate ? O_TRUNC : 0);
  Descriptor descriptor("os.write", path_, flags, 0666);
  if (mode == Mode::kAppend) {
    struct stat facts {};
    if (::fstat(descriptor.get(), &facts) != 0) throw IoError("os.write", "cannot examine", path_.native(), errno);
    offset_ = facts.st_size;
  }
  descriptor_ = descriptor.release();
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), offset_(other.offset_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    path_ = std::move(other.path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    offset_ = other.offset_;
  }
  return *this;
}

void OutputFile::write(std::span<const std::byte> bytes) {
  write_at(offset_, bytes);
  offset_ += static_cast<int64_t>(bytes.size());
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const int64_t at = offset + static_cast<int64_t>(done);
    const ssize_t wrote = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done, at);
    if (wrote > 0) {
      done += static_cast<size_t>(wrote);
      continue;
    }
    // POSIX allows 0 only for empty writes; a file system that returns it anyway must not make us spin.
    const int error = wrote == 0 ? EIO : errno;
    if (error == EINTR) continue;
    throw IoError("os.write",
                  "wrote " + std::to_string(done) + " of " + std::to_string(bytes.size()) + " bytes at offset " +
                      std::to_string(offset) + " of",
                  path_.native(), error, error == ENOSPC ? "Free space on this disk or choose another folder." : "");
  }
}

void OutputFile::sync() {
  while (::fsync(descriptor_) != 0) {
    if (errno == EINTR) continue;
    // Pipes and devices cannot be synced and need not be.
    if (errno == EINVAL || errno == EROFS) return;
    throw IoError("os.write", "cannot sync", path_.native(), errno);
  }
}

void OutputFile::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  // After EINTR the descriptor is gone on Linux: closing again could close another thread's file.
  if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR) {
    throw IoError("os.write", "cannot close", path_.native(), errno);
  }
}

}  // namespace headrace::os
