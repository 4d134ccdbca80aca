// The system calls that open, write, rename and remove, in one place, so that a test can stand in for the disk: fail a
// call, end the process at it, write a part, or forget what was not synced. Everything of Headrace that writes files
// with these rooms' functions passes through here. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace headrace::os {

// Each member is one system call: its result, or -1 with errno. No retries and no exceptions: those are the callers'.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // The descriptor is closed on exec.
  virtual int open(const std::filesystem::path& path, int flags, unsigned mode);
  virtual int close(int descriptor);
  // Up to bytes.size() [bytes]; both may do less.
  virtual int64_t read(int descriptor, std::span<std::byte> bytes);
  virtual int64_t write_at(int descriptor, std::span<const std::byte> bytes, int64_t offset);
  // Of a file: its bytes. Of a folder: the names in it.
  virtual int sync(int descriptor);
  virtual int make_folder(const std::filesystem::path& path);
  // What lies at `to` is replaced in the same step.
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  // Two names change places in one step; EINVAL or ENOSYS where the file system cannot.
  virtual int exchange(const std::filesystem::path& one, const std::filesystem::path& other);
  virtual int remove_file(const std::filesystem::path& path);
  virtual int remove_folder(const std::filesystem::path& path);  // an empty one
  // What an ordinary user may still write [bytes].
  virtual int64_t free_bytes(const std::filesystem::path& path);
};

// The one that this process uses now: the system's own unless a test stands in.
FileSystem& file_system();

// For tests: while it lives, `stand_in` is used by every thread of the process. At most one at a time (InternalError).
// Make it before the threads that write and let it outlive their last call.
class FileSystemScope {
 public:
  explicit FileSystemScope(FileSystem& stand_in);
  ~FileSystemScope();
  FileSystemScope(const FileSystemScope&) = delete;
  FileSystemScope& operator=(const FileSystemScope&) = delete;
};

}  // namespace headrace::os
