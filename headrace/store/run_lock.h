// The right to write into a run folder: one process has it, and within it one thread at a time uses it.
#pragma once

#include <filesystem>
#include <mutex>

#include "headrace/os/lock_file.h"

namespace headrace::store {

class RunLock {
 public:
  // Makes the folder when missing and holds run.lock in it until destroyed; a process that dies lets go of it. Throws
  // ConfigError (place "store.lock") naming pid and host of the holder when there is another, also in this process;
  // IoError. A process forked from the holder keeps the lock held as long as it lives.
  explicit RunLock(std::filesystem::path run_folder);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  const std::filesystem::path& run_folder() const { return run_folder_; }
  // Waits for the other threads of this process that write checkpoints into the folder.
  [[nodiscard]] std::unique_lock<std::mutex> exclusive() const { return std::unique_lock(mutex_); }

 private:
  const std::filesystem::path run_folder_;
  os::LockFile file_;
  mutable std::mutex mutex_;
};

}  // namespace headrace::store
