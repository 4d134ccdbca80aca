// Removes checkpoints that are not needed any more. Blocking; any thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "headrace/store/run_lock.h"

namespace headrace::store {

// Keeps the `count` (>= 1, InternalError) complete checkpoints of the highest steps and the one that `latest` names;
// older complete ones are removed, and leftovers of writers that died. Each gets a hidden name, for good, before its
// files go, so that there is never half of one under a visible name. Damaged checkpoints neither count nor are
// touched: somebody may want to look at them. Waits for a write of another thread to end. Throws IoError, the first
// one after everything was tried.
void keep_last(const RunLock& lock, int64_t count);

// Removes what a writer that died left in the folder `checkpoints`, and gives a checkpoint that it was about to replace
// its name back. What cannot be removed stays for the next time. For holders of RunLock::exclusive.
void remove_leftovers(const std::filesystem::path& checkpoints);

}  // namespace headrace::store
