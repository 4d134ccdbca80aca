#include "headrace/store/keep.h"

#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/os/folder.h"
#include "headrace/store/list.h"
#include "headrace/store/names.h"

namespace headrace::store {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  return entries;
}

void remove_leftover(const fs::path& path) {
  const std::string name = path.filename().native();
  if (is_temporary_latest(name)) os::remove_file(path);
  const auto hidden = hidden_in(name);
  if (!hidden) return;
  const fs::path visible = path.parent_path() / step_name(hidden->step);
  std::error_code error;
  if (hidden->what == Hidden::kReplaced && !fs::exists(visible, error)) {
    os::rename_path(path, visible);
    os::sync_folder(path.parent_path());
  } else if (fs::symlink_status(path, error).type() == fs::file_type::directory) {
    os::remove_tree(path);
  } else {
    os::remove_file(path);  // a link of such a name would lead our writes elsewhere
  }
}

// Removes each, whatever becomes of the others; the first error.
std::exception_ptr try_to_remove_leftovers(const fs::path& checkpoints) {
  std::exception_ptr first;
  for (const fs::path& path : entries_of(checkpoints)) {
    try {
      remove_leftover(path);
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  return first;
}

void hide(const CheckpointInfo& info) {
  const fs::path checkpoints = info.folder.parent_path();
  os::rename_path(info.folder, checkpoints / hidden_name(info.step, Hidden::kRemoved));
  os::sync_folder(checkpoints);
}

}  // namespace

void remove_leftovers(const fs::path& checkpoints) { try_to_remove_leftovers(checkpoints); }

void keep_last(const RunLock& lock, int64_t count) {
  if (count < 1) throw InternalError("store.keep", std::to_string(count) + " checkpoints to keep; at least 1 is.");
  const auto exclusive = lock.exclusive();
  const std::string latest = read_latest(lock.run_folder());
  int64_t num_kept = 0;
  for (const CheckpointInfo& info : list_checkpoints(lock.run_folder())) {
    if (!info.is_complete()) continue;
    const bool is_kept = num_kept < count || info.folder.filename() == latest;
    is_kept ? static_cast<void>(++num_kept) : hide(info);
  }
  if (const auto error = try_to_remove_leftovers(checkpoints_of(lock.run_folder()))) std::rethrow_exception(error);
}

}  // namespace headrace::store
