// A fresh folder in memory where the system has such a place, else on the disk: for thousands of small folders, whose
// durability is the stand-in's business and not the real disk's. Removed at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace headrace::fault {

class MemoryFolder {
 public:
  MemoryFolder() : path_(made_in("/dev/shm")) {
    if (path_.empty()) path_ = made_in(std::filesystem::temp_directory_path());
    if (path_.empty()) throw std::runtime_error("no temporary folder");
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  static std::filesystem::path made_in(const std::filesystem::path& parent) {
    std::string name = (parent / "headrace-XXXXXX").native();
    return ::mkdtemp(name.data()) == nullptr ? "" : name;
  }

  std::filesystem::path path_;
};

}  // namespace headrace::fault
