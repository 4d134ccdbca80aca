// A stretch of the text on its way to the model, and where each of its bytes came from. Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::tokenizer {

struct ByteRange {
  uint32_t begin;  // [bytes] of the text as given
  uint32_t end;
};

// Views only: the bytes and the origins belong to the text or to a Rewrite that outlives the piece.
struct Piece {
  std::string_view text;
  const ByteRange* origin = nullptr;  // one per byte of `text`; null: byte i is byte base + i of the text as given
  size_t base = 0;
  bool at_start = false;  // begins where the whole text begins

  Piece slice(size_t begin, size_t end) const {
    return {text.substr(begin, end - begin), origin == nullptr ? nullptr : origin + begin, base + begin,
            at_start && begin == 0};
  }
  // Bytes of the text as given behind bytes [begin, end) of this piece; end must be over begin.
  ByteRange range(size_t begin, size_t end) const {
    if (origin != nullptr) return {origin[begin].begin, origin[end - 1].end};
    return {static_cast<uint32_t>(base + begin), static_cast<uint32_t>(base + end)};
  }
};

// Builds a changed copy of a piece; keeps origins only when asked to.
class Rewrite {
 public:
  void begin(bool track) {
    text_.clear();
    origin_.clear();
    track_ = track;
  }
  void copy(const Piece& piece, size_t begin, size_t end) {
    text_.append(piece.text.substr(begin, end - begin));
    if (!track_) return;
    for (size_t i = begin; i < end; ++i) origin_.push_back(piece.range(i, i + 1));
  }
  // New bytes that stand for bytes [begin, end) of `piece`; begin == end: for none of them.
  void put(std::string_view bytes, const Piece& piece, size_t begin, size_t end) {
    text_.append(bytes);
    if (!track_) return;
    ByteRange range{0, 0};
    if (begin < end) {
      range = piece.range(begin, end);
    } else if (begin < piece.text.size()) {
      range = piece.range(begin, begin + 1);
      range.end = range.begin;
    }
    origin_.insert(origin_.end(), bytes.size(), range);
  }
  // Valid until the next begin().
  Piece piece(const Piece& source) const {
    return {text_, track_ ? origin_.data() : nullptr, source.base, source.at_start};
  }

 private:
  std::string text_;
  std::vector<ByteRange> origin_;
  bool track_ = false;
};

}  // namespace headrace::tokenizer
