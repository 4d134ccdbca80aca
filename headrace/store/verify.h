// Reads checkpoints whole and says what of them is not as it was written. Blocking, as fast as the disk reads; any
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/store/list.h"

namespace headrace::store {

// Called now and then with bytes done and bytes in all; false stops the work.
using OnProgress = std::function<bool(int64_t done_bytes, int64_t total_bytes)>;

// One sentence for everything wrong: the manifest, or each file that is missing, a link, of another size, unreadable,
// or of another hash, with its name and both numbers. Empty when every byte is as written. Memory: 1 MiB. Throws
// RunError (place "store.verify") when on_progress stops it.
std::vector<std::string> verify(const CheckpointInfo& info, const OnProgress& on_progress = {});

struct SkippedCheckpoint {
  CheckpointInfo info;
  std::vector<std::string> faults;  // at least one
};

// The newest checkpoint of the folder that verifies whole; empty when there is none. What was newer and did not is
// added to `skipped`, newest first: say so to whoever resumes.
std::optional<CheckpointInfo> find_newest_verified(const std::filesystem::path& run_folder,
                                                   std::vector<SkippedCheckpoint>& skipped,
                                                   const OnProgress& on_progress = {});

}  // namespace headrace::store
