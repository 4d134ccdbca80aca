#include "headrace/safetensors/shard_layout.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string_view>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/safetensors/header.h"
#include "headrace/safetensors/header_reader.h"

namespace headrace::safetensors {
namespace {

constexpr std::string_view kPlace = "safetensors.write";
constexpr size_t kHeaderAlignment = 8;  // the reference pads its header so that the data begins at a multiple of 8

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

int64_t length_of(const PlannedTensor& tensor) {
  try {
    return bytes_of(tensor.dtype, tensor.shape, tensor.name, "the plan");
  } catch (const DataError& wrong) {
    throw ConfigError(kPlace, wrong.what());
  }
}

void check_names(std::span<const PlannedTensor> plan) {
  std::set<std::string_view> names;
  for (const PlannedTensor& tensor : plan) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      throw ConfigError(kPlace, "tensor " + in_quotes(tensor.name) + " is planned twice or has no usable name.");
    }
  }
}

std::vector<ShardLayout> split(std::span<const PlannedTensor> plan, int64_t max_shard_bytes) {
  std::vector<ShardLayout> shards(1);
  int64_t total = 0;
  for (size_t i = 0; i < plan.size(); ++i) {
    const int64_t length = length_of(plan[i]);
    if (__builtin_add_overflow(total, length, &total)) {
      throw ConfigError(kPlace, "the planned tensors take more than 2^63 bytes.");
    }
    const ShardLayout& last = shards.back();
    if (last.data_bytes > 0 && length > max_shard_bytes - last.data_bytes) shards.emplace_back();
    shards.back().tensors.push_back({i, 0, length});
    shards.back().data_bytes += length;
  }
  return shards;
}

// Orders the tensors and computes header and offsets.
void lay_out(ShardLayout& shard, std::span<const PlannedTensor> plan,
             const std::map<std::string, std::string>& metadata) {
  std::stable_sort(shard.tensors.begin(), shard.tensors.end(), [&](const PlacedTensor& a, const PlacedTensor& b) {
    return bits_of(plan[a.number].dtype) > bits_of(plan[b.number].dtype);
  });
  std::string json;
  if (!metadata.empty()) json = ",\"__metadata__\":" + json_text(metadata);
  int64_t offset = 0;
  for (PlacedTensor& placed : shard.tensors) {
    const PlannedTensor& tensor = plan[placed.number];
    placed.offset = offset;
    offset += placed.length;
    const OrderedJson entry = {
        {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {placed.offset, offset}}};
    json += "," + json_text(tensor.name) + ":" + entry.dump();
  }
  if (!json.empty()) json[0] = '{';
  shard.head = with_length(json.empty() ? "{}" : json + "}");
  for (PlacedTensor& placed : shard.tensors) placed.offset += static_cast<int64_t>(shard.head.size());
}

}  // namespace

std::vector<ShardLayout> lay_out_shards(std::span<const PlannedTensor> plan, int64_t max_shard_bytes,
                                        const std::map<std::string, std::string>& metadata) {
  if (max_shard_bytes < 1) {
    throw ConfigError(kPlace, "max_shard_bytes is " + std::to_string(max_shard_bytes) + "; at least 1 is needed.");
  }
  check_names(plan);
  std::vector<ShardLayout> shards = split(plan, max_shard_bytes);
  for (ShardLayout& shard : shards) lay_out(shard, plan, metadata);
  return shards;
}

std::string shard_name(std::string_view stem, size_t number, size_t count) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu.safetensors", number, count);
  return std::string(stem) + numbers;
}

}  // namespace headrace::safetensors
