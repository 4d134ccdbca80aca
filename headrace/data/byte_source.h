// The bytes of a data file in order, unpacked on the way when it is .gz or .zst: never more than a few blocks in
// memory. Move-only, one owner, blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headrace::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the start of `into`; fewer bytes than asked for are no end, 0 is. Throws IoError when the system refuses and
  // DataError when packed data is damaged or ends early, and at the end of a file that was written to meanwhile.
  virtual size_t read(std::span<char> into) = 0;
  // Bytes taken from the file so far, as it lies on disk.
  virtual int64_t bytes_consumed() const = 0;
};

// By the file's name: .gz, .zst, else as it is. Throws IoError when it cannot be opened or is a folder.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

// The same over bytes in memory that outlive it; `name` decides about unpacking.
std::unique_ptr<ByteSource> bytes_in_memory(std::string_view bytes, const std::string& name);

// "a/b.jsonl.gz" -> "a/b.jsonl": the name without .gz or .zst.
std::string_view without_packing(std::string_view path);

}  // namespace headrace::data
