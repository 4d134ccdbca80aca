// A disk whose calls are numbered 0, 1, 2, ... and one of which, or all from one on, go wrong. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/os/file_system.h"

namespace headrace::fault {

struct Plan {
  enum class What {
    kNothing,       // only count and record
    kExit,          // the process ends before the call, as if killed
    kExitHalfway,   // a write puts half of its bytes first; any other call is done; then the process ends
    kFail,          // the call fails with error_number, nothing is done
    kFailFromThen,  // and so does every later one
    kShorten,       // a write puts, or a read gives, one byte only; other calls are done as always
  };
  What what = What::kNothing;
  int64_t at = 0;            // the number of the call; kShorten with at < 0 means every call
  int error_number = 0;      // for kFail and kFailFromThen
  bool can_exchange = true;  // false: a file system without that call
};

constexpr int kKilled = 137;  // exit code of a process that kExit or kExitHalfway ended

// The system's calls, but syncing does not wait: a process that is killed loses nothing by that, and tests end sooner.
struct UnsyncedFiles : os::FileSystem {
  int sync(int) override { return 0; }
};

class NumberedFiles : public os::FileSystem {
 public:
  explicit NumberedFiles(Plan plan, os::FileSystem& inner = unsynced());

  int64_t num_calls() const;
  // What call `number` was, for people: "write tensors-00001-of-00002.safetensors". Empty beyond the last.
  std::string call(int64_t number) const;

  int open(const std::filesystem::path& path, int flags, unsigned mode) override;
  int close(int descriptor) override;
  int64_t read(int descriptor, std::span<std::byte> bytes) override;
  int64_t write_at(int descriptor, std::span<const std::byte> bytes, int64_t offset) override;
  int sync(int descriptor) override;
  int make_folder(const std::filesystem::path& path) override;
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  int exchange(const std::filesystem::path& one, const std::filesystem::path& other) override;
  int remove_file(const std::filesystem::path& path) override;
  int remove_folder(const std::filesystem::path& path) override;
  int64_t free_bytes(const std::filesystem::path& path) override;

  static os::FileSystem& unsynced();

 private:
  enum class Do { kCall, kPart, kFail };

  // Counts the call and says what to do; ends the process where the plan says so.
  Do next(const std::string& verb, const std::filesystem::path& path);
  std::filesystem::path path_of(int descriptor) const;
  // Runs `call` as the plan wants it.
  template <typename Call>
  auto step(const std::string& verb, const std::filesystem::path& path, const Call& call) -> decltype(call());

  const Plan plan_;
  os::FileSystem& inner_;
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
  std::map<int, std::filesystem::path> open_;  // by descriptor
};

}  // namespace headrace::fault
