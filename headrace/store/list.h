// The checkpoints of a run folder, as their manifests tell. Reads no tensor data. Blocking; any thread, also while
// another thread or process writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "headrace/store/manifest.h"

namespace headrace::store {

struct CheckpointInfo {
  std::filesystem::path folder;
  int64_t step = 0;
  Manifest manifest;  // empty when it cannot be read
  std::string fault;  // why the checkpoint is of no use, one sentence; empty when its manifest is in order and every
                      // file is there with its size

  bool is_complete() const { return fault.empty(); }
};

// Every folder that has a checkpoint's name, newest (highest step) first, damaged ones included. Empty when there are
// none. Throws IoError when the folder itself cannot be read.
std::vector<CheckpointInfo> list_checkpoints(const std::filesystem::path& run_folder);

// One of them. Never throws for what is wrong with the checkpoint: that is `fault`.
CheckpointInfo read_info(const std::filesystem::path& folder, int64_t step);

// Why the file of this entry cannot be the one written, judged by name, kind and size; empty when it can.
std::string file_fault(const std::filesystem::path& folder, const FileEntry& entry);

// The name that <run folder>/checkpoints/latest gives, if a checkpoint of that step is there; else empty.
std::string read_latest(const std::filesystem::path& run_folder);

}  // namespace headrace::store
