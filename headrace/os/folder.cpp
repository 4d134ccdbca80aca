#include "headrace/os/folder.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "headrace/os/descriptor.h"
#include "headrace/os/file.h"
#include "headrace/os/file_system.h"

namespace headrace::os {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "os.folder";

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) throw io_error(kPlace, "cannot list", folder, error.value());
  return entries;
}

}  // namespace

void create_folders(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return;
  const fs::path whole = path.has_filename() ? path : path.parent_path();  // without a closing slash
  const fs::path parent = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  if (parent != whole) create_folders(parent);
  if (uninterrupted([&] { return file_system().make_folder(whole); }) != 0) {
    const int error = errno;
    if (error == EEXIST && fs::is_directory(whole, ignored)) return;  // another thread or process was faster
    throw io_error(kPlace, "cannot make the folder", whole, error);
  }
  sync_folder(parent);
}

void rename_path(const fs::path& from, const fs::path& to) {
  if (uninterrupted([&] { return file_system().rename(from, to); }) == 0) return;
  throw io_error(kPlace, "cannot rename " + from.native() + " to", to, errno);
}

bool exchange_names(const fs::path& one, const fs::path& other) {
  if (uninterrupted([&] { return file_system().exchange(one, other); }) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS) return false;
  throw io_error(kPlace, "cannot swap " + one.native() + " with", other, errno);
}

bool remove_file(const fs::path& path) {
  if (uninterrupted([&] { return file_system().remove_file(path); }) == 0) return true;
  if (errno == ENOENT) return false;
  throw io_error(kPlace, "cannot remove", path, errno);
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::not_found) return;
  if (type != fs::file_type::directory) throw io_error(kPlace, "cannot remove", path, error ? error.value() : ENOTDIR);
  for (const fs::path& entry : entries_of(path)) {
    const bool is_folder = fs::symlink_status(entry, error).type() == fs::file_type::directory;
    is_folder ? remove_tree(entry) : static_cast<void>(remove_file(entry));
  }
  if (uninterrupted([&] { return file_system().remove_folder(path); }) != 0 && errno != ENOENT) {
    throw io_error(kPlace, "cannot remove the folder", path, errno);
  }
}

}  // namespace headrace::os
