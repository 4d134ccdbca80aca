// manifest.json: which files a checkpoint consists of, with their sizes and hashes. Written last, so a checkpoint with
// a manifest is whole. It carries a hash of itself, so that one wrong byte in it is found too. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::store {

inline constexpr int64_t kManifestFormat = 1;
inline constexpr int64_t kMaxManifestBytes = 4 << 20;  // some 35,000 files

struct FileEntry {
  std::string name;      // in the checkpoint's folder itself: letters, digits, '_', '-' and '.', no dot in front
  int64_t bytes = 0;     // >= 0
  std::string xxh3_128;  // 32 digits

  bool operator==(const FileEntry&) const = default;
};

struct Manifest {
  int64_t step = 0;              // >= 0
  std::string created;           // UTC, for people
  std::vector<FileEntry> files;  // all but the manifest itself; state.json is among them

  bool operator==(const Manifest&) const = default;
  int64_t total_bytes() const;
};

// The text of the file. Throws ConfigError (place "store.manifest") when it would exceed kMaxManifestBytes.
std::string manifest_text(const Manifest& manifest);

// Throws DataError (place "store.manifest") naming `source`, what is wrong and where: too long, its own hash does not
// match (both are given), not JSON, a format that this version does not know, a key that is missing or of the wrong
// type, a file name that is not one (see FileEntry) or comes twice, sizes that are negative or overflow in sum.
Manifest parse_manifest(std::string_view text, std::string_view source);

// `body`, an object's JSON up to and with the comma after its last member, made whole with its own hash.
std::string sealed(std::string_view body);

}  // namespace headrace::store
