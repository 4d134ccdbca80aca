// A file being written: every byte or an error. Move-only, one owner, blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace headrace::os {

class OutputFile {
 public:
  enum class Mode {
    kCreate,  // a new file, or an old one emptied
    kAppend,  // a new file, or an old one continued at its end
  };

  // All members throw IoError (place "os.write") naming path, errno and, for writes, the offset and both counts; for a
  // full disk also what is free. Short writes and interrupted calls are continued. After a failed sync the bytes may
  // be lost for good, even if a second one succeeds (Linux forgets the error): write the file anew.
  explicit OutputFile(std::filesystem::path path, Mode mode = Mode::kCreate);
  // Closes without reporting errors: call close() to see them.
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;

  // At the end of what was written so far.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // At `offset` [bytes], whatever lies between stays or becomes zeros. Does not move the place of write().
  void write_at(int64_t offset, std::span<const std::byte> bytes);
  // Waits until the bytes are on the disk (fsync).
  void sync();
  // Closes and reports a late error. Does not sync. A second call does nothing.
  void close();

  const std::filesystem::path& path() const { return path_; }
  // Where write() goes on [bytes from the start of the file].
  int64_t offset() const { return offset_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t offset_ = 0;
};

}  // namespace headrace::os
