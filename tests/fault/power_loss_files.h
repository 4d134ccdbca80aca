// A disk that remembers what was synced, and what it holds after the power went: the bytes of a file as they were at
// its last sync, the names of a folder as they were at its last sync, and of everything newer whatever one chooses. The
// real files are written too, so that the program under test can read back. One thread.
//
// What is assumed: one rename or exchange takes place whole or not at all, and syncing a folder syncs all names in it.
// What is not: that newer names or bytes survive in the order in which they were written, or that syncing a file syncs
// its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "headrace/os/file_system.h"

namespace headrace::fault {

// What becomes of what was not synced.
struct Survival {
  enum class Names { kLost, kKept, kRandom };
  enum class Bytes { kLost, kHalf, kZeros, kKept, kRandom };  // kZeros: the length survives, the bytes do not

  Names names = Names::kLost;
  Bytes bytes = Bytes::kLost;
  uint64_t seed = 0;  // for kRandom, which decides anew for each name and each file
};

struct Fate {
  std::string name;  // for people
  Survival survival;
};
// Those that the tests try.
std::vector<Fate> fates();

class PowerLossFiles : public os::FileSystem {
 public:
  // Everything under `root` is taken as synced.
  explicit PowerLossFiles(std::filesystem::path root);

  // What `root` holds when the power goes now: files by their path from it; folders have an empty last name.
  std::map<std::filesystem::path, std::string> left(const Survival& survival) const;

  int open(const std::filesystem::path& path, int flags, unsigned mode) override;
  int close(int descriptor) override;
  int64_t write_at(int descriptor, std::span<const std::byte> bytes, int64_t offset) override;
  int sync(int descriptor) override;
  int make_folder(const std::filesystem::path& path) override;
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  int exchange(const std::filesystem::path& one, const std::filesystem::path& other) override;
  int remove_file(const std::filesystem::path& path) override;
  int remove_folder(const std::filesystem::path& path) override;

 private:
  struct Node {
    bool is_folder = false;
    std::string bytes, synced_bytes;
  };
  using Folders = std::map<int, std::map<std::string, int>>;  // node of a folder -> name -> node
  struct Slot {
    int folder = -1;  // -1: outside of root
    std::string name;
  };
  // Names and what they stand for afterwards (-1: nothing), all at once.
  struct Change {
    std::vector<std::pair<Slot, int>> now;
    bool is_synced = false;
  };

  int scan(const std::filesystem::path& path);
  Slot slot_of(const std::filesystem::path& path) const;
  int node_at(const std::filesystem::path& path) const;
  static void apply(const Change& change, Folders& folders);
  void change(std::vector<std::pair<Slot, int>> now);
  void collect(const Folders& folders, int node, const Survival& survival, const std::filesystem::path& path,
               std::map<std::filesystem::path, std::string>& files) const;

  const std::filesystem::path root_;
  std::vector<Node> nodes_;
  Folders synced_folders_, folders_;
  std::vector<Change> changes_;
  std::map<int, int> open_;  // descriptor -> node
};

// Puts what is left into the new folder `into`.
void restore(const std::map<std::filesystem::path, std::string>& left, const std::filesystem::path& into);

}  // namespace headrace::fault
