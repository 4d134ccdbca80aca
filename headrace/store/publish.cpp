#include "headrace/store/publish.h"

#include <string>
#include <system_error>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/os/folder.h"
#include "headrace/store/names.h"

namespace headrace::store {

namespace fs = std::filesystem;

PartialFolder::PartialFolder(const fs::path& checkpoints, int64_t step)
    : path_(checkpoints / hidden_name(step, Hidden::kPartial)) {
  os::create_folders(path_);
}

PartialFolder::~PartialFolder() {
  if (is_released_) return;
  try {
    os::remove_tree(path_);
  } catch (const Error&) {
    // The next write tries again (remove_leftovers); the error that brought us here matters more.
  }
}

std::optional<fs::path> publish(const fs::path& partial, int64_t step) {
  const fs::path checkpoints = partial.parent_path();
  const fs::path visible = checkpoints / step_name(step);
  std::optional<fs::path> replaced;
  std::error_code error;
  if (fs::symlink_status(visible, error).type() == fs::file_type::not_found) {
    os::rename_path(partial, visible);
  } else if (os::exchange_names(partial, visible)) {
    replaced = partial;
  } else {
    replaced = checkpoints / hidden_name(step, Hidden::kReplaced);
    os::rename_path(visible, *replaced);
    os::rename_path(partial, visible);
  }
  os::sync_folder(checkpoints);
  return replaced;
}

void publish_latest(const fs::path& checkpoints, int64_t step) {
  os::write_file_atomically(checkpoints / kLatestName, step_name(step) + "\n");
}

}  // namespace headrace::store
