#include "headrace/store/verify.h"

#include "headrace/base/errors.h"
#include "headrace/os/input_file.h"
#include "headrace/store/digest.h"

namespace headrace::store {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

struct Reading {
  const OnProgress& on_progress;
  int64_t total_bytes;
  int64_t done_bytes = 0;
  std::vector<std::byte> chunk = std::vector<std::byte>(kChunkBytes);

  void advance(size_t bytes) {
    done_bytes += static_cast<int64_t>(bytes);
    if (on_progress && !on_progress(done_bytes, total_bytes)) throw RunError("store.verify", "was stopped.");
  }
};

std::string hash_fault(const std::filesystem::path& path, const FileEntry& entry, Reading& reading) {
  try {
    os::InputFile file(path);
    Digest digest;
    // One that grows meanwhile must not keep us for ever: the size was checked before.
    for (int64_t left = entry.bytes; left > 0;) {
      const size_t got = file.read(reading.chunk);
      if (got == 0) break;
      digest.add(std::span(reading.chunk).first(got));
      reading.advance(got);
      left -= static_cast<int64_t>(got);
    }
    if (digest.hex() == entry.xxh3_128) return "";
    return path.native() + " has the hash " + digest.hex() + "; " + entry.xxh3_128 + " was written.";
  } catch (const IoError& error) {
    return error.what();
  }
}

}  // namespace

std::vector<std::string> verify(const CheckpointInfo& info, const OnProgress& on_progress) {
  std::vector<std::string> faults;
  if (info.manifest.files.empty()) {
    faults.push_back(info.is_complete() ? info.folder.native() + " has no manifest." : info.fault);
    return faults;
  }
  Reading reading{on_progress, info.manifest.total_bytes()};
  for (const FileEntry& entry : info.manifest.files) {
    std::string fault = file_fault(info.folder, entry);
    if (fault.empty()) fault = hash_fault(info.folder / entry.name, entry, reading);
    if (!fault.empty()) faults.push_back(std::move(fault));
  }
  return faults;
}

std::optional<CheckpointInfo> find_newest_verified(const std::filesystem::path& run_folder,
                                                   std::vector<SkippedCheckpoint>& skipped,
                                                   const OnProgress& on_progress) {
  for (CheckpointInfo& info : list_checkpoints(run_folder)) {
    std::vector<std::string> faults = verify(info, on_progress);
    if (faults.empty()) return std::move(info);
    skipped.push_back({std::move(info), std::move(faults)});
  }
  return std::nullopt;
}

}  // namespace headrace::store
