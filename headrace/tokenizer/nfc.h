// Unicode normalization form C, with the character set that `tokenizers` normalizes (unicode_ranges.inc): characters
// newer than its tables are left alone, as it leaves them. Linear in the text but for sorting runs of combining marks
// (n log n). Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headrace::tokenizer {

// Where a stretch that NFC may change lies: [begin, end) holds one inert character, if there is one, and all the
// composing characters after it. begin == end == text.size() when nothing from `from` on may change.
struct ComposingSpan {
  size_t begin;
  size_t end;
};
ComposingSpan next_composing_span(std::string_view text, size_t from);

// NFC of valid UTF-8; used on one such stretch at a time.
std::string nfc(std::string_view text);

}  // namespace headrace::tokenizer
