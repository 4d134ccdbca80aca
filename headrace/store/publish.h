// Makes a complete folder visible and `latest` name it. For write.cpp. Blocking, the holder of RunLock::exclusive only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace headrace::store {

// A folder under construction, removed again unless release() is called.
class PartialFolder {
 public:
  // Makes <checkpoints>/.step-<step>.partial-<pid>. Throws IoError.
  PartialFolder(const std::filesystem::path& checkpoints, int64_t step);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void release() { is_released_ = true; }

 private:
  std::filesystem::path path_;
  bool is_released_ = false;
};

// Renames the synced folder `partial` to the name of its step, for good (synced). One of the same step leaves its place
// in the same step where the file system can do that; else it is found under its hidden name in between. Returns where
// the replaced one lies now, if there was one. Throws IoError.
std::optional<std::filesystem::path> publish(const std::filesystem::path& partial, int64_t step);

// Throws IoError.
void publish_latest(const std::filesystem::path& checkpoints, int64_t step);

}  // namespace headrace::store
