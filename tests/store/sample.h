// Small checkpoints for tests: tensors of several types in a few files, different for every seed.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/store/reader.h"
#include "headrace/store/verify.h"
#include "headrace/store/write.h"

namespace headrace::store {

struct Sample {
  std::vector<std::unique_ptr<std::vector<std::byte>>> buffers;
  std::vector<TensorView> tensors;
  Json state;

  void add(std::string name, safetensors::DType dtype, std::vector<int64_t> shape, Rng& rng) {
    int64_t bytes = safetensors::bits_of(dtype) / 8;
    for (const int64_t dimension : shape) bytes *= dimension;
    auto& buffer = buffers.emplace_back(std::make_unique<std::vector<std::byte>>(static_cast<size_t>(bytes)));
    for (std::byte& byte : *buffer) byte = static_cast<std::byte>(rng.below(256));
    tensors.push_back({std::move(name), dtype, std::move(shape), *buffer});
  }
};

// With kSmallShards three files of tensors.
inline Sample sample(uint64_t seed) {
  using safetensors::DType;
  Rng rng(seed);
  Sample made;
  made.add("layers.0.weight", DType::kBF16, {3, 5}, rng);
  made.add("layers.0.m", DType::kF32, {100}, rng);
  made.add("nothing", DType::kF32, {0, 4}, rng);
  made.add("large", DType::kU8, {700}, rng);
  made.add("count", DType::kI64, {}, rng);
  made.add("layers.1.weight", DType::kBF16, {7}, rng);
  made.state = {{"seed", seed}, {"text", "caf\xC3\xA9"}, {"rate", 0.125}, {"list", {1, 2, 3}}};
  return made;
}

inline const WriteOptions kSmallShards{.max_shard_bytes = 512};

// What differs between the checkpoint on the disk and what was to be written; empty when every byte is the same.
inline std::string difference(const CheckpointInfo& info, const Sample& expected) {
  for (const std::string& fault : verify(info)) return fault;
  const CheckpointReader reader = CheckpointReader::open(info);
  if (reader.state() != expected.state) return "the state is " + reader.state().dump();
  if (reader.names().size() != expected.tensors.size()) return std::to_string(reader.names().size()) + " tensors";
  for (const TensorView& tensor : expected.tensors) {
    if (!reader.has(tensor.name)) return tensor.name + " is not there";
    const safetensors::TensorInfo& found = reader.info(tensor.name);
    if (found.dtype != tensor.dtype || found.shape != tensor.shape) return tensor.name + " has another shape";
    const auto bytes = reader.bytes(tensor.name);
    if (!std::equal(bytes.begin(), bytes.end(), tensor.bytes.begin(), tensor.bytes.end())) return tensor.name;
  }
  return "";
}

// The names in a folder, hidden ones too.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

inline void put_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace headrace::store
