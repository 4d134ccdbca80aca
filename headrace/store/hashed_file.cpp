#include "headrace/store/hashed_file.h"

#include <algorithm>

namespace headrace::store {
namespace {

constexpr size_t kChunkBytes = 4 << 20;  // still in the processor's cache when the system copies what was just hashed

}  // namespace

bool HashedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min(bytes.size(), kChunkBytes));
    digest_.add(chunk);
    file_.write(chunk);
    if (!progress_.advance(static_cast<int64_t>(chunk.size()))) return false;
    bytes = bytes.subspan(chunk.size());
  }
  return true;
}

FileEntry HashedFile::finish() {
  file_.sync();
  file_.close();
  return {file_.path().filename().native(), file_.offset(), digest_.hex()};
}

}  // namespace headrace::store
