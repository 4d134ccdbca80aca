#include "headrace/os/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/os/descriptor.h"

namespace headrace::os {
namespace {

// madvise wants whole pages: `grow` takes every page touched, otherwise only pages that lie wholly inside.
void advise(std::span<const std::byte> bytes, size_t begin, size_t length, int advice, bool grow) noexcept {
  if (begin >= bytes.size()) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t end = length > bytes.size() - begin ? bytes.size() : begin + length;
  if (grow) {
    begin -= begin % page;
  } else {
    begin = (begin + page - 1) / page * page;
    if (end != bytes.size()) end -= end % page;
  }
  if (begin < end) ::madvise(const_cast<std::byte*>(bytes.data()) + begin, end - begin, advice);
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)) {
  // Without O_NONBLOCK a pipe of that name would make open() wait for a writer.
  const Descriptor descriptor("os.map", path_, O_RDONLY | O_NONBLOCK);
  struct stat facts {};
  if (::fstat(descriptor.get(), &facts) != 0) throw IoError("os.map", "cannot examine", path_.native(), errno);
  if (!S_ISREG(facts.st_mode)) {
    throw IoError("os.map", "cannot map", path_.native(), S_ISDIR(facts.st_mode) ? EISDIR : EINVAL,
                  "Only regular files can be mapped.");
  }
  if (facts.st_size == 0) return;
  const auto size = static_cast<size_t>(facts.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (address == MAP_FAILED) throw IoError("os.map", "cannot map", path_.native(), errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() { unmap(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

void MappedFile::will_need(size_t begin, size_t length) const noexcept {
  advise(bytes_, begin, length, MADV_WILLNEED, true);
}

void MappedFile::done_with(size_t begin, size_t length) const noexcept {
  advise(bytes_, begin, length, MADV_DONTNEED, false);
}

void MappedFile::unmap() noexcept {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  bytes_ = {};
}

}  // namespace headrace::os
