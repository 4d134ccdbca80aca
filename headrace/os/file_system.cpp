#include "headrace/os/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "headrace/base/errors.h"

namespace headrace::os {
namespace {

namespace fs = std::filesystem;

FileSystem& system_itself() {
  static FileSystem calls;
  return calls;
}

// A parameter through every function that writes would serve tests alone and leave out whoever forgets to pass it on.
std::atomic<FileSystem*> in_use{nullptr};

}  // namespace

int FileSystem::open(const fs::path& path, int flags, unsigned mode) {
  return ::open(path.c_str(), flags | O_CLOEXEC, mode);
}

int FileSystem::close(int descriptor) { return ::close(descriptor); }

int64_t FileSystem::read(int descriptor, std::span<std::byte> bytes) {
  return ::read(descriptor, bytes.data(), bytes.size());
}

int64_t FileSystem::write_at(int descriptor, std::span<const std::byte> bytes, int64_t offset) {
  return ::pwrite(descriptor, bytes.data(), bytes.size(), offset);
}

int FileSystem::sync(int descriptor) { return ::fsync(descriptor); }

int FileSystem::make_folder(const fs::path& path) { return ::mkdir(path.c_str(), 0777); }

int FileSystem::rename(const fs::path& from, const fs::path& to) { return std::rename(from.c_str(), to.c_str()); }

int FileSystem::exchange(const fs::path& one, const fs::path& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
}

int FileSystem::remove_file(const fs::path& path) { return ::unlink(path.c_str()); }

int FileSystem::remove_folder(const fs::path& path) { return ::rmdir(path.c_str()); }

int64_t FileSystem::free_bytes(const fs::path& path) {
  struct statvfs facts {};
  if (::statvfs(path.c_str(), &facts) != 0) return -1;
  return static_cast<int64_t>(facts.f_bavail) * static_cast<int64_t>(facts.f_frsize);
}

FileSystem& file_system() {
  FileSystem* stand_in = in_use.load(std::memory_order_acquire);
  return stand_in != nullptr ? *stand_in : system_itself();
}

FileSystemScope::FileSystemScope(FileSystem& stand_in) {
  FileSystem* none = nullptr;
  if (!in_use.compare_exchange_strong(none, &stand_in)) {
    throw InternalError("os.file_system", "a second stand-in for the file system while one is in use.");
  }
}

FileSystemScope::~FileSystemScope() { in_use = nullptr; }

}  // namespace headrace::os
