// A file of a checkpoint being written: hashed on the way, synced at its end. For write.cpp. One owner, blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "headrace/os/output_file.h"
#include "headrace/store/digest.h"
#include "headrace/store/manifest.h"
#include "headrace/store/verify.h"

namespace headrace::store {

// How far the whole checkpoint is.
class Progress {
 public:
  Progress(const OnProgress& callback, int64_t total_bytes) : callback_(callback), total_bytes_(total_bytes) {}

  // False when the write shall be given up.
  bool advance(int64_t bytes) {
    done_bytes_ += bytes;
    return !callback_ || callback_(done_bytes_, total_bytes_);
  }

 private:
  const OnProgress& callback_;
  const int64_t total_bytes_;
  int64_t done_bytes_ = 0;
};

class HashedFile {
 public:
  // Both must outlive the file. Throws IoError, as all members.
  HashedFile(const std::filesystem::path& path, Progress& progress) : file_(path), progress_(progress) {}

  // Appends. False when the write shall be given up.
  bool write(std::span<const std::byte> bytes);
  // Syncs and closes; what the manifest says of the file.
  FileEntry finish();

 private:
  os::OutputFile file_;
  Progress& progress_;
  Digest digest_;
};

}  // namespace headrace::store
