// Writes a checkpoint so that it is there whole or not at all, whatever happens meanwhile: all files are synced under a
// hidden name, the manifest comes last, one rename makes it visible, and only then `latest` names it.
// Blocking; any thread, one at a time for a run folder (others wait).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/safetensors/dtype.h"
#include "headrace/store/list.h"
#include "headrace/store/run_lock.h"
#include "headrace/store/verify.h"

namespace headrace::store {

struct TensorView {
  std::string name;
  safetensors::DType dtype = safetensors::DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // little-endian, row-major; must not change while it is written
};

struct WriteOptions {
  int64_t max_shard_bytes = int64_t{2} << 30;  // [bytes] >= 1; data of one file. A larger tensor gets a file of its own
  OnProgress on_progress = {};                 // in the thread that writes; false gives the checkpoint up
};

inline constexpr int64_t kMaxStateBytes = 64 << 20;

// After this returns the checkpoint <run folder>/checkpoints/step-<step> is on the disk and `latest` names it; one of
// the same step is replaced. Empty when on_progress gave it up. Throws, with every older checkpoint as it was:
// CapacityError (place "store.write") with both sizes before anything is written when the disk is too small;
// ConfigError for names twice or not UTF-8; InternalError for a negative step, bytes that do not match dtype and shape,
// a state over kMaxStateBytes or not UTF-8; IoError. After an IoError the new checkpoint may be there nevertheless,
// then whole. Tensors are written from where they are, without a copy. Leftovers of writers that died are removed
// first.
std::optional<CheckpointInfo> write_checkpoint(const RunLock& lock, int64_t step, std::span<const TensorView> tensors,
                                               const Json& state, const WriteOptions& options = {});

}  // namespace headrace::store
