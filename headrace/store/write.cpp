#include "headrace/store/write.h"

#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"
#include "headrace/os/file.h"
#include "headrace/os/folder.h"
#include "headrace/safetensors/shard_layout.h"
#include "headrace/store/hashed_file.h"
#include "headrace/store/keep.h"
#include "headrace/store/names.h"
#include "headrace/store/publish.h"
#include "headrace/store/timestamp.h"

namespace headrace::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "store.write";
constexpr int64_t kSmallFilesBytes = 1 << 20;  // manifest, `latest`, blocks that are not full: more than enough

// What is known before the first byte is written.
struct Content {
  std::span<const TensorView> tensors;
  std::vector<safetensors::ShardLayout> shards;
  std::string state;

  int64_t bytes() const {
    auto sum = static_cast<int64_t>(state.size());
    for (const safetensors::ShardLayout& shard : shards) sum += shard.file_bytes();
    return sum;
  }
};

std::string state_text(const Json& state) {
  std::string text;
  try {
    text = state.dump(2) + "\n";
  } catch (const Json::exception& error) {
    throw InternalError(kPlace, "the state cannot be written as JSON: " + std::string(error.what()) + ".");
  }
  if (static_cast<int64_t>(text.size()) <= kMaxStateBytes) return text;
  throw InternalError(kPlace, "the state has " + std::to_string(text.size()) + " bytes; at most " +
                                  std::to_string(kMaxStateBytes) + " are allowed. Large things belong into tensors.");
}

Content content_of(std::span<const TensorView> tensors, const Json& state, const WriteOptions& options) {
  std::vector<safetensors::PlannedTensor> plan;
  plan.reserve(tensors.size());
  for (const TensorView& tensor : tensors) plan.push_back({tensor.name, tensor.dtype, tensor.shape});
  Content content{tensors, safetensors::lay_out_shards(plan, options.max_shard_bytes, {}), state_text(state)};
  for (const safetensors::ShardLayout& shard : content.shards) {
    for (const safetensors::PlacedTensor& placed : shard.tensors) {
      const TensorView& tensor = tensors[placed.number];
      if (std::ssize(tensor.bytes) == placed.length) continue;
      throw InternalError(kPlace, "tensor '" + tensor.name + "' comes with " + std::to_string(tensor.bytes.size()) +
                                      " bytes; its dtype and shape need " + std::to_string(placed.length) + ".");
    }
  }
  return content;
}

void check_free_space(const fs::path& checkpoints, int64_t step, int64_t bytes) {
  const int64_t need = bytes + kSmallFilesBytes, have = os::free_bytes(checkpoints);
  if (need <= have) return;
  throw CapacityError(kPlace, "the checkpoint of step " + std::to_string(step) + " needs " + format_bytes(need) +
                                  "; the disk of " + checkpoints.native() + " has " + format_bytes(have) +
                                  " free. Free space, keep fewer checkpoints or choose another folder.");
}

// False when given up, as the next two.
bool write_shard(const safetensors::ShardLayout& shard, const Content& content, HashedFile& file) {
  if (!file.write(std::as_bytes(std::span(shard.head)))) return false;
  for (const safetensors::PlacedTensor& placed : shard.tensors) {
    if (!file.write(content.tensors[placed.number].bytes)) return false;
  }
  return true;
}

bool write_files(const fs::path& folder, const Content& content, const OnProgress& on_progress, Manifest& manifest) {
  Progress progress(on_progress, content.bytes());
  for (size_t i = 0; i < content.shards.size(); ++i) {
    HashedFile file(folder / safetensors::shard_name("tensors", i + 1, content.shards.size()), progress);
    if (!write_shard(content.shards[i], content, file)) return false;
    manifest.files.push_back(file.finish());
  }
  HashedFile state(folder / kStateName, progress);
  if (!state.write(std::as_bytes(std::span(content.state)))) return false;
  manifest.files.push_back(state.finish());
  return true;
}

// The names of all other files are on the disk before it is.
void write_manifest(const fs::path& folder, const Manifest& manifest) {
  os::sync_folder(folder);
  os::OutputFile file(folder / kManifestName);
  file.write(manifest_text(manifest));
  file.sync();
  file.close();
  os::sync_folder(folder);
}

}  // namespace

std::optional<CheckpointInfo> write_checkpoint(const RunLock& lock, int64_t step, std::span<const TensorView> tensors,
                                               const Json& state, const WriteOptions& options) {
  if (step < 0) throw InternalError(kPlace, "step " + std::to_string(step) + " is negative.");
  const auto exclusive = lock.exclusive();
  const Content content = content_of(tensors, state, options);
  const fs::path checkpoints = checkpoints_of(lock.run_folder());
  os::create_folders(checkpoints);
  // A writer that died may have made the folder without having synced its name.
  os::sync_folder(lock.run_folder());
  remove_leftovers(checkpoints);
  check_free_space(checkpoints, step, content.bytes());

  PartialFolder partial(checkpoints, step);
  Manifest manifest{step, utc_now(), {}};
  if (!write_files(partial.path(), content, options.on_progress, manifest)) return std::nullopt;
  write_manifest(partial.path(), manifest);
  const auto replaced = publish(partial.path(), step);
  partial.release();
  publish_latest(checkpoints, step);
  if (replaced) os::remove_tree(*replaced);
  return CheckpointInfo{checkpoints / step_name(step), step, std::move(manifest), ""};
}

}  // namespace headrace::store
