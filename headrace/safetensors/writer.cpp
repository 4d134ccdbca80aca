#include "headrace/safetensors/writer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/base/units.h"
#include "headrace/os/file.h"
#include "headrace/os/file_system.h"
#include "headrace/os/folder.h"
#include "headrace/safetensors/header_reader.h"

namespace headrace::safetensors {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "safetensors.write";
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

// "model-" digits "-of-" digits ".safetensors"
bool is_shard_name(std::string_view name) {
  const std::string_view begin = "model-", middle = "-of-", end = ".safetensors";
  const auto take_digits = [&] {
    const size_t count = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(count);
    return count > 0;
  };
  if (!name.starts_with(begin)) return false;
  name.remove_prefix(begin.size());
  if (!take_digits() || !name.starts_with(middle)) return false;
  name.remove_prefix(middle.size());
  return take_digits() && name == end;
}

}  // namespace

Writer::Writer(fs::path folder, std::vector<PlannedTensor> plan, WriterOptions options)
    : folder_(std::move(folder)), plan_(std::move(plan)), options_(std::move(options)), spots_(plan_.size()) {
  lay_out();
  os::create_folders(folder_);
  check_free_space();
}

Writer::~Writer() {
  if (is_finished_) return;
  for (Shard& shard : shards_) {
    shard.file.reset();
    os::file_system().remove_file(temporary_path(shard));
  }
}

void Writer::lay_out() {
  std::vector<ShardLayout> layouts = lay_out_shards(plan_, options_.max_shard_bytes, options_.metadata);
  for (size_t i = 0; i < layouts.size(); ++i) {
    for (const PlacedTensor& placed : layouts[i].tensors) {
      spots_[placed.number] = {i, placed};
      index_.emplace(plan_[placed.number].name, placed.number);
    }
    Shard& shard = shards_.emplace_back();
    shard.name = layouts.size() == 1 ? std::string(kSingle) : shard_name("model", i + 1, layouts.size());
    shard.num_left = layouts[i].tensors.size();
    shard.layout = std::move(layouts[i]);
    total_bytes_ += shard.layout.data_bytes;
  }
}

void Writer::check_free_space() const {
  int64_t need = 0;
  for (const Shard& shard : shards_) need += shard.layout.file_bytes();
  const int64_t have = os::free_bytes(folder_);
  if (need <= have) return;
  throw CapacityError(kPlace, "the disk of " + folder_.native() + " has " + format_bytes(have) +
                                  " free; the model needs " + format_bytes(need) +
                                  ". Free space, choose another folder or a smaller dtype.");
}

void Writer::open_shard(Shard& shard) {
  shard.file.emplace(temporary_path(shard));
  shard.file->write(shard.layout.head);
}

void Writer::write(std::string_view name, std::span<const std::byte> bytes) {
  const auto found = index_.find(name);
  if (found == index_.end()) throw InternalError(kPlace, "tensor " + in_quotes(name) + " is not planned.");
  Spot& spot = spots_[found->second];
  if (spot.written) throw InternalError(kPlace, "tensor " + in_quotes(name) + " is written twice.");
  if (static_cast<int64_t>(bytes.size()) != spot.placed.length) {
    throw InternalError(kPlace, "tensor " + in_quotes(name) + " got " + std::to_string(bytes.size()) +
                                    " bytes; planned are " + std::to_string(spot.placed.length) + ".");
  }
  Shard& shard = shards_[spot.shard];
  if (!shard.file) open_shard(shard);
  shard.file->write_at(spot.placed.offset, bytes);
  spot.written = true;
  if (--shard.num_left > 0) return;
  shard.file->sync();
  shard.file->close();
}

void Writer::finish() {
  for (size_t i = 0; i < plan_.size(); ++i) {
    if (!spots_[i].written)
      throw InternalError(kPlace, "tensor " + in_quotes(plan_[i].name) + " was planned but not written.");
  }
  if (plan_.empty()) {
    open_shard(shards_[0]);
    shards_[0].file->sync();
    shards_[0].file->close();
  }
  for (const Shard& shard : shards_) os::rename_path(temporary_path(shard), folder_ / shard.name);
  os::sync_folder(folder_);
  if (shards_.size() > 1) publish_index();
  remove_shadowing();
  is_finished_ = true;
}

void Writer::publish_index() const {
  Json weight_map = Json::object();
  for (size_t i = 0; i < plan_.size(); ++i) weight_map[plan_[i].name] = shards_[spots_[i].shard].name;
  const Json index = {{"metadata", {{"total_size", total_bytes_}}}, {"weight_map", weight_map}};
  os::write_file_atomically(folder_ / kIndex, index.dump(2) + "\n");
}

// An old single file would win over a new index, and old shards would lie about unused.
void Writer::remove_shadowing() const {
  std::set<std::string> ours;
  for (const Shard& shard : shards_) ours.insert(shard.name);
  if (shards_.size() > 1) ours.emplace(kIndex);
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().native();
    if ((name == kSingle || name == kIndex || is_shard_name(name)) && !ours.contains(name)) old.push_back(entry.path());
  }
  for (const fs::path& path : old) os::remove_file(path);
  if (!old.empty()) os::sync_folder(folder_);
}

std::vector<std::string> Writer::file_names() const {
  std::vector<std::string> names;
  for (const Shard& shard : shards_) names.push_back(shard.name);
  return names;
}

fs::path Writer::temporary_path(const Shard& shard) const { return folder_ / (shard.name + ".tmp"); }

}  // namespace headrace::safetensors
