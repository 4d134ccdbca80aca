// A file that at most one process holds. The kernel lets go of it when the holder ends, however it ends, so there is
// no stale lock to clean up. One owner, does not wait.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/os/descriptor.h"

namespace headrace::os {

class LockFile {
 public:
  // Makes the file when missing and takes it if nobody holds it, not even this process; see is_held(). Throws IoError
  // (place "os.lock"), also where the file system knows no locks.
  explicit LockFile(std::filesystem::path path);

  bool is_held() const { return is_held_; }
  // What the holder wrote, at most kMaxNoteBytes; may be that of an earlier one that has not written yet.
  std::string note() const;
  // For the holder: what others find in note(). Not synced.
  void write_note(std::string_view note);

  static constexpr size_t kMaxNoteBytes = 512;

 private:
  // False when the file was removed or replaced since it was opened: a lock on it keeps nobody out.
  bool is_at_its_path() const;

  std::filesystem::path path_;
  std::optional<Descriptor> descriptor_;
  bool is_held_ = false;
};

}  // namespace headrace::os
