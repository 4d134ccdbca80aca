// A regular file mapped for reading. Move-only; the view lives as long as the object. Any thread may read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace headrace::os {

class MappedFile {
 public:
  // Maps the whole file; an empty file gives an empty span. Throws IoError (place "os.map") when it is missing, not a
  // regular file or refused. Another program that cuts the file short while it is mapped kills us with SIGBUS.
  explicit MappedFile(std::filesystem::path path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // Tells the system that this part of bytes() will be read soon, or is not needed again soon. Never fails.
  void will_need(size_t begin, size_t length) const noexcept;
  void done_with(size_t begin, size_t length) const noexcept;

 private:
  void unmap() noexcept;

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

}  // namespace headrace::os
