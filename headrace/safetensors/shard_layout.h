// How named tensors are divided into safetensors files, and what stands where in each: headers and offsets, before a
// byte of data is at hand. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "headrace/safetensors/dtype.h"

namespace headrace::safetensors {

struct PlannedTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

struct PlacedTensor {
  size_t number = 0;   // its position in the plan
  int64_t offset = 0;  // [bytes] from the start of the file
  int64_t length = 0;  // [bytes]
};

// One file: `head` (length and header) and then the data of `tensors` in their order, without holes.
struct ShardLayout {
  std::string head;
  std::vector<PlacedTensor> tensors;
  int64_t data_bytes = 0;

  int64_t file_bytes() const { return static_cast<int64_t>(head.size()) + data_bytes; }
};

// Fills files in the order of the plan up to max_shard_bytes of data each; a larger tensor gets one of its own. Within
// a file large elements come first, as the reference does it, so that each tensor begins at a multiple of its element.
// An empty plan gives one file without tensors. Throws ConfigError (place "safetensors.write") for an impossible plan:
// a name twice, empty or not UTF-8, a negative or overflowing shape, max_shard_bytes < 1.
std::vector<ShardLayout> lay_out_shards(std::span<const PlannedTensor> plan, int64_t max_shard_bytes,
                                        const std::map<std::string, std::string>& metadata);

// "model-00002-of-00005.safetensors" for stem "model", number 2 (from 1) and count 5.
std::string shard_name(std::string_view stem, size_t number, size_t count);

}  // namespace headrace::safetensors
