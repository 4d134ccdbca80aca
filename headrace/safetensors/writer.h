// Writes the weights of a model folder as one safetensors file or as shards with an index, tensor by tensor, so that no
// more than one tensor is held. Until finish() only temporary names exist; the index is published last.
// One owner, blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/os/output_file.h"
#include "headrace/safetensors/shard_layout.h"

namespace headrace::safetensors {

struct WriterOptions {
  int64_t max_shard_bytes = 5'000'000'000;  // >= 1; data of one file. A larger tensor gets a file of its own
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
};

class Writer {
 public:
  // Splits the plan into shards (lay_out_shards, whose ConfigError it throws) and checks the free space: CapacityError
  // when the disk holds less than the files need, IoError. `folder` is created when missing.
  Writer(std::filesystem::path folder, std::vector<PlannedTensor> plan, WriterOptions options = {});
  // Removes what finish() did not publish.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Each planned tensor exactly once; the order of the plan is fastest (one open file at a time), any order works.
  // `bytes` is little-endian, row-major. Throws InternalError for an unplanned name, a second time or a wrong length;
  // IoError.
  void write(std::string_view name, std::span<const std::byte> bytes);

  // Syncs and publishes everything under the names that transformers expects, then removes weight files of an earlier
  // save that would shadow these. Throws InternalError naming the first tensor not written; IoError. Renaming several
  // files is not one step: where a reader may look at the same time, write into a new folder and os::publish_folder it.
  void finish();

  int64_t total_bytes() const { return total_bytes_; }  // of all tensors' data
  // The files' final names, in order ("model.safetensors", or the shards without the index).
  std::vector<std::string> file_names() const;

 private:
  struct Shard {
    std::string name;
    ShardLayout layout;
    size_t num_left = 0;  // tensors not yet written
    std::optional<os::OutputFile> file;
  };
  struct Spot {
    size_t shard;
    PlacedTensor placed;
    bool written = false;
  };

  void lay_out();
  void check_free_space() const;
  void open_shard(Shard& shard);
  void publish_index() const;
  void remove_shadowing() const;
  std::filesystem::path temporary_path(const Shard& shard) const;

  std::filesystem::path folder_;
  std::vector<PlannedTensor> plan_;
  WriterOptions options_;
  std::vector<Shard> shards_;
  std::vector<Spot> spots_;                             // parallel to plan_
  std::unordered_map<std::string_view, size_t> index_;  // name -> position in plan_
  int64_t total_bytes_ = 0;
  bool is_finished_ = false;
};

}  // namespace headrace::safetensors
