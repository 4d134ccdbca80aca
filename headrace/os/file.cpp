#include "headrace/os/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <span>
#include <system_error>

#include "headrace/base/errors.h"
#include "headrace/os/descriptor.h"
#include "headrace/os/file_system.h"
#include "headrace/os/folder.h"

namespace headrace::os {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMinReadChunk = size_t{1} << 12, kMaxReadChunk = size_t{1} << 20;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// A name in the same folder that no other thread or process uses now.
fs::path temporary_beside(const fs::path& path) {
  static std::atomic<uint64_t> counter{0};
  const std::string suffix = "." + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
  return folder_of(path) / ("." + path.filename().native() + suffix);
}

bool is_full_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) && !fs::is_empty(path, error);
}

// Puts `temporary` in the place of a full folder; afterwards the old contents lie in the returned folder.
fs::path swap_in(const fs::path& temporary, const fs::path& final_path) {
  if (exchange_names(temporary, final_path)) return temporary;
  const fs::path old = temporary_beside(final_path);
  rename_path(final_path, old);
  rename_path(temporary, final_path);
  return old;
}

bool is_inside(const fs::path& folder, const fs::path& path) {
  const auto [end, at] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

// Without links, as far as the path exists.
fs::path resolved_path(const fs::path& path) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(fs::absolute(path), error);
  if (error) throw IoError("os.child_of", "cannot resolve", path.native(), error.value());
  return resolved.has_filename() ? resolved : resolved.parent_path();
}

void check_name(std::string_view name, const fs::path& folder) {
  const fs::path relative(name);
  const char* wrong = nullptr;
  if (name.empty() || name == ".") wrong = "is not a file name";
  if (name.find('\0') != std::string_view::npos) wrong = "holds a zero byte";
  if (relative.is_absolute()) wrong = "is absolute";
  if (std::find(relative.begin(), relative.end(), "..") != relative.end()) wrong = "holds '..'";
  if (wrong == nullptr) return;
  throw DataError("os.child_of", "'" + std::string(name.substr(0, name.find('\0'))) + "' " + wrong +
                                     ". Names must stay inside " + folder.native() + ".");
}

}  // namespace

std::string read_file(const fs::path& path, int64_t max_bytes) {
  const Descriptor descriptor("os.read", path, O_RDONLY);
  struct stat facts {};
  if (::fstat(descriptor.get(), &facts) != 0) throw IoError("os.read", "cannot examine", path.native(), errno);
  // The size is a first guess only: files grow, and /proc says 0.
  const int64_t guess = std::clamp<int64_t>(facts.st_size, 0, max_bytes);
  std::string contents;
  size_t done = 0;
  while (true) {
    const size_t step =
        std::max(kMinReadChunk, done == 0 ? static_cast<size_t>(guess) + 1 : std::min(done, kMaxReadChunk));
    contents.resize(done + step);
    const auto rest = std::as_writable_bytes(std::span(contents)).subspan(done);
    const size_t got = read_fully("os.read", descriptor.get(), rest, static_cast<int64_t>(done), path);
    done += got;
    if (static_cast<int64_t>(done) > max_bytes) {
      const int64_t size = std::max<int64_t>(facts.st_size, static_cast<int64_t>(done));
      throw IoError("os.read",
                    "found at least " + std::to_string(size) + " bytes where at most " + std::to_string(max_bytes) +
                        " are allowed in",
                    path.native(), EFBIG);
    }
    if (got < step) break;
  }
  contents.resize(done);
  return contents;
}

void write_file_atomically(const fs::path& path, std::string_view contents) {
  const fs::path temporary = temporary_beside(path);
  try {
    OutputFile file(temporary);
    file.write(contents);
    file.sync();
    file.close();
    rename_path(temporary, path);
  } catch (...) {
    file_system().remove_file(temporary);
    throw;
  }
  sync_folder(folder_of(path));
}

void publish_folder(const fs::path& temporary, const fs::path& final_path, IfExists if_exists) {
  sync_folder(temporary);
  if (!is_full_folder(final_path)) {
    rename_path(temporary, final_path);
    sync_folder(folder_of(final_path));
    return;
  }
  if (if_exists == IfExists::kRefuse) {
    throw IoError("os.publish", "cannot publish into", final_path.native(), EEXIST,
                  "Remove the folder or choose another one.");
  }
  const fs::path old = swap_in(temporary, final_path);
  sync_folder(folder_of(final_path));
  remove_tree(old);
}

void sync_folder(const fs::path& folder) {
  const Descriptor descriptor("os.sync", folder, O_RDONLY | O_DIRECTORY);
  if (uninterrupted([&] { return file_system().sync(descriptor.get()); }) == 0) return;
  // EINVAL and EROFS: a file system that keeps no folders to sync.
  if (errno != EINVAL && errno != EROFS) throw io_error("os.sync", "cannot sync the folder", folder, errno);
}

int64_t free_bytes(const fs::path& path) {
  std::error_code error;
  fs::path existing = fs::absolute(path, error);
  while (!fs::exists(existing, error) && existing.has_relative_path()) existing = existing.parent_path();
  const int64_t free = uninterrupted([&] { return file_system().free_bytes(existing); });
  if (free < 0) throw IoError("os.free_bytes", "cannot examine", path.native(), errno);
  return free;
}

fs::path child_of(const fs::path& folder, std::string_view name) {
  check_name(name, folder);
  const fs::path path = folder / name;
  const fs::path root = resolved_path(folder);
  const fs::path target = resolved_path(path);
  std::error_code error;
  if (fs::is_symlink(path, error) && !fs::exists(path, error)) {
    throw DataError("os.child_of", path.native() + " is a link to something that does not exist.");
  }
  if (is_inside(root, target)) return path;
  const bool is_hub_snapshot = root.parent_path().filename() == "snapshots";
  if (is_hub_snapshot && is_inside(root.parent_path().parent_path() / "blobs", target)) return path;
  throw DataError("os.child_of", path.native() + " is a link to " + target.native() + ", outside " + root.native() +
                                     ". Copy the file into the folder.");
}

}  // namespace headrace::os
