#include "headrace/safetensors/writer.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/base/units.h"
#include "headrace/os/file.h"
#include "headrace/safetensors/header_reader.h"

namespace headrace::safetensors {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "safetensors.write";
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr size_t kHeaderAlignment = 8;  // the reference pads its header so that the data begins at a multiple of 8

std::string shard_name(size_t number, size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, count);
  return name;
}

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

// Text by text, because nlohmann's ordered objects search all their keys at each insertion.
std::string json_text(const Json& value) {
  try {
    return value.dump();
  } catch (const Json::exception&) {
    throw ConfigError(kPlace, "a tensor name or a metadata entry is not UTF-8.");
  }
}

std::string with_length(std::string json) {
  json.append((kHeaderAlignment - json.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  std::string head(sizeof(uint64_t), '\0');
  for (size_t i = 0; i < head.size(); ++i) head[i] = static_cast<char>(json.size() >> (8 * i));
  return head + json;
}

}  // namespace

Writer::Writer(fs::path folder, std::vector<PlannedTensor> plan, WriterOptions options)
    : folder_(std::move(folder)), plan_(std::move(plan)), options_(std::move(options)), spots_(plan_.size()) {
  if (options_.max_shard_bytes < 1) {
    throw ConfigError(kPlace,
                      "max_shard_bytes is " + std::to_string(options_.max_shard_bytes) + "; at least 1 is needed.");
  }
  split_into_shards();
  for (size_t i = 0; i < shards_.size(); ++i) lay_out(i);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw IoError(kPlace, "cannot create the folder", folder_.native(), error.value());
  check_free_space();
}

Writer::~Writer() {
  if (is_finished_) return;
  for (Shard& shard : shards_) {
    shard.file.reset();
    std::error_code ignored;
    fs::remove(temporary_path(shard), ignored);
  }
}

void Writer::split_into_shards() {
  for (size_t i = 0; i < plan_.size(); ++i) {
    const PlannedTensor& tensor = plan_[i];
    if (tensor.name.empty() || tensor.name == "__metadata__" || !index_.emplace(tensor.name, i).second) {
      throw ConfigError(kPlace, "tensor " + in_quotes(tensor.name) + " is planned twice or has no usable name.");
    }
    try {
      spots_[i].length = bytes_of(tensor.dtype, tensor.shape, tensor.name, folder_.native());
    } catch (const DataError& wrong) {
      throw ConfigError(kPlace, wrong.what());
    }
    const int64_t length = spots_[i].length;
    if (__builtin_add_overflow(total_bytes_, length, &total_bytes_)) {
      throw ConfigError(kPlace, "the planned tensors take more than 2^63 bytes.");
    }
    const bool is_full = !shards_.empty() && shards_.back().data_bytes > 0 &&
                         length > options_.max_shard_bytes - shards_.back().data_bytes;
    if (shards_.empty() || is_full) shards_.emplace_back();
    shards_.back().tensors.push_back(i);
    shards_.back().data_bytes += length;
    spots_[i].shard = shards_.size() - 1;
  }
  if (shards_.empty()) shards_.emplace_back();  // an empty plan makes a valid file without tensors
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i].name = shards_.size() == 1 ? std::string(kSingle) : shard_name(i + 1, shards_.size());
    shards_[i].num_left = shards_[i].tensors.size();
  }
}

// Large elements first, as the reference does, so that each tensor begins at a multiple of its element.
void Writer::lay_out(size_t number) {
  Shard& shard = shards_[number];
  std::stable_sort(shard.tensors.begin(), shard.tensors.end(),
                   [&](size_t a, size_t b) { return bits_of(plan_[a].dtype) > bits_of(plan_[b].dtype); });
  std::string json;
  if (!options_.metadata.empty()) json = ",\"__metadata__\":" + json_text(options_.metadata);
  int64_t offset = 0;
  for (const size_t i : shard.tensors) {
    spots_[i].offset = offset;
    offset += spots_[i].length;
    const OrderedJson entry = {
        {"dtype", name_of(plan_[i].dtype)}, {"shape", plan_[i].shape}, {"data_offsets", {spots_[i].offset, offset}}};
    json += "," + json_text(plan_[i].name) + ":" + entry.dump();
  }
  if (!json.empty()) json[0] = '{';
  shard.head = with_length(json.empty() ? "{}" : json + "}");
  for (const size_t i : shard.tensors) spots_[i].offset += static_cast<int64_t>(shard.head.size());
}

void Writer::check_free_space() const {
  int64_t need = total_bytes_;
  for (const Shard& shard : shards_) need += static_cast<int64_t>(shard.head.size());
  const int64_t have = os::free_bytes(folder_);
  if (need <= have) return;
  throw CapacityError(kPlace, "the disk of " + folder_.native() + " has " + format_bytes(have) +
                                  " free; the model needs " + format_bytes(need) +
                                  ". Free space, choose another folder or a smaller dtype.");
}

void Writer::open_shard(Shard& shard) {
  shard.file.emplace(temporary_path(shard));
  shard.file->write(shard.head);
}

void Writer::write(std::string_view name, std::span<const std::byte> bytes) {
  const auto found = index_.find(name);
  if (found == index_.end()) throw InternalError(kPlace, "tensor " + in_quotes(name) + " is not planned.");
  Spot& spot = spots_[found->second];
  if (spot.written) throw InternalError(kPlace, "tensor " + in_quotes(name) + " is written twice.");
  if (static_cast<int64_t>(bytes.size()) != spot.length) {
    throw InternalError(kPlace, "tensor " + in_quotes(name) + " got " + std::to_string(bytes.size()) +
                                    " bytes; planned are " + std::to_string(spot.length) + ".");
  }
  Shard& shard = shards_[spot.shard];
  if (!shard.file) open_shard(shard);
  shard.file->write_at(spot.offset, bytes);
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
  for (const Shard& shard : shards_) {
    const fs::path final_path = folder_ / shard.name;
    std::error_code error;
    fs::rename(temporary_path(shard), final_path, error);
    if (error) throw IoError(kPlace, "cannot rename a temporary file to", final_path.native(), error.value());
  }
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
  for (const fs::path& path : old) {
    std::error_code error;
    fs::remove(path, error);
    if (error) throw IoError(kPlace, "cannot remove the older", path.native(), error.value());
  }
  if (!old.empty()) os::sync_folder(folder_);
}

std::vector<std::string> Writer::file_names() const {
  std::vector<std::string> names;
  for (const Shard& shard : shards_) names.push_back(shard.name);
  return names;
}

fs::path Writer::temporary_path(const Shard& shard) const { return folder_ / (shard.name + ".tmp"); }

}  // namespace headrace::safetensors
