#include <algorithm>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/data/readers.h"

namespace headrace::data {
namespace {

constexpr size_t kBlockBytes = 1 << 18;  // even multiples of four, so that no id straddles two blocks
constexpr std::string_view kPlace = "data.read";

// Fills the whole of `into` unless the file ends.
size_t read_full(ByteSource& bytes, std::span<char> into) {
  size_t filled = 0;
  while (filled < into.size()) {
    const size_t got = bytes.read(into.subspan(filled));
    if (got == 0) break;
    filled += got;
  }
  return filled;
}

uint32_t id_at(std::span<const char> bytes, size_t at, size_t width) {
  uint32_t id = 0;
  for (size_t i = 0; i < width; ++i) id |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return id;
}

// Four-byte ids below 65536 look like two-byte ids of which every second is zero.
bool looks_like_four_bytes(std::span<const char> block) {
  if (block.size() < 64 || block.size() % 4 != 0) return false;
  for (size_t at = 2; at < block.size(); at += 4) {
    if (id_at(block, at, 2) != 0) return false;
  }
  return true;
}

size_t width_of(Format format, int64_t vocabulary, std::span<const char> first_block) {
  if (format == Format::bin16) return 2;
  if (format == Format::bin32 || vocabulary > 65536) return 4;
  return looks_like_four_bytes(first_block) ? 4 : 2;
}

class TokenFileReader {
 public:
  TokenFileReader(CorpusBuilder& builder, const std::string& path) : builder_(builder), path_(path) {}

  void take(std::span<const char> block, size_t width) {
    if (block.size() % width != 0) {
      throw DataError(kPlace, path_ + ": its length is no multiple of " + std::to_string(width) + ", the bytes of an " +
                                  "id. Give --data-format bin16 or bin32, or fetch the file again.");
    }
    for (size_t at = 0; at < block.size(); at += width) take_id(id_at(block, at, width), width);
    flush();
  }
  void finish() {
    if (open_) end_document(first_);
  }

 private:
  void take_id(uint32_t id, size_t width) {
    if (id >= static_cast<uint64_t>(builder_.codec().vocabulary)) {
      throw DataError(kPlace,
                      path_ + ": id " + std::to_string(id) + " at byte " +
                          std::to_string(index_ * static_cast<int64_t>(width)) + ", the vocabulary ends before " +
                          std::to_string(builder_.codec().vocabulary) +
                          ". Another tokenizer made the file, or its ids have " +
                          (width == 2 ? "four bytes (--data-format bin32)." : "two bytes (--data-format bin16)."));
    }
    if (ended_) end_document(false);
    if (!open_) builder_.begin_text(index_);
    open_ = true;
    pending_.push_back(static_cast<int32_t>(id));
    ++index_;
    ended_ = builder_.codec().end_of_text == static_cast<int32_t>(id);
  }

  void end_document(bool whole_file) {
    flush();
    builder_.end_text(whole_file);
    open_ = ended_ = false;
    first_ = false;
  }

  void flush() {
    builder_.extend_text(pending_);
    pending_.clear();
  }

  CorpusBuilder& builder_;
  const std::string path_;
  std::vector<int32_t> pending_;
  int64_t index_ = 0;
  bool open_ = false;   // a document has begun
  bool ended_ = false;  // and its last token is an end of text
  bool first_ = true;   // it is the file's first
};

}  // namespace

void read_token_file(std::unique_ptr<ByteSource> bytes, Format format, CorpusBuilder& builder) {
  TokenFileReader reader(builder, builder.file());
  std::vector<char> block(kBlockBytes);
  size_t width = 0;
  while (const size_t length = read_full(*bytes, block)) {
    const std::span<const char> filled = std::span(block).first(length);
    if (width == 0) width = width_of(format, builder.codec().vocabulary, filled);
    reader.take(filled, width);
    builder.progress(bytes->bytes_consumed());
  }
  reader.finish();
}

}  // namespace headrace::data
