#include "headrace/os/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>

#include "headrace/os/descriptor.h"
#include "headrace/os/file_system.h"

namespace headrace::os {

OutputFile::OutputFile(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  const int flags = O_WRONLY | O_CREAT | (mode == Mode::kCreate ? O_TRUNC : 0);
  Descriptor descriptor("os.write", path_, flags, 0666);
  if (mode == Mode::kAppend) {
    struct stat facts {};
    if (::fstat(descriptor.get(), &facts) != 0) throw io_error("os.write", "cannot examine", path_, errno);
    offset_ = facts.st_size;
  }
  descriptor_ = descriptor.release();
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) file_system().close(descriptor_);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), offset_(other.offset_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) file_system().close(descriptor_);
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
  write_fully("os.write", descriptor_, bytes, offset, path_);
}

void OutputFile::sync() {
  if (uninterrupted([&] { return file_system().sync(descriptor_); }) == 0) return;
  // Pipes and devices cannot be synced and need not be.
  if (errno != EINVAL && errno != EROFS) throw io_error("os.write", "cannot sync", path_, errno);
}

void OutputFile::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  // After EINTR the descriptor is gone on Linux: closing again could close another thread's file.
  if (descriptor >= 0 && file_system().close(descriptor) != 0 && errno != EINTR) {
    throw io_error("os.write", "cannot close", path_, errno);
  }
}

}  // namespace headrace::os
