#include "headrace/tokenizer/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/tokenizer/char_class.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

bool is_composing(const CharClasses& classes, CodePoint c) { return (classes.of(c.value) & kComposing) != 0; }

// utf8proc sorts marks by exchanging neighbours, which is quadratic on hostile text: sort here, let it only compose.
void sort_marks(std::vector<utf8proc_int32_t>& points) {
  // A mark newer than the library's tables stays where it is, as any other inert character.
  const auto rank = [&classes = char_classes()](utf8proc_int32_t c) {
    return (classes.of(static_cast<uint32_t>(c)) & kComposing) != 0 ? utf8proc_get_property(c)->combining_class : 0;
  };
  for (size_t i = 0; i < points.size();) {
    if (rank(points[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < points.size() && rank(points[end]) != 0) ++end;
    std::stable_sort(points.begin() + static_cast<std::ptrdiff_t>(i), points.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](auto a, auto b) { return rank(a) < rank(b); });
    i = end;
  }
}

}  // namespace

ComposingSpan next_composing_span(std::string_view text, size_t from) {
  const CharClasses& classes = char_classes();
  size_t before = from;  // the character in front of `at`
  size_t at = from;
  while (at < text.size()) {
    if (static_cast<uint8_t>(text[at]) < 0xCC) {  // below U+0300 nothing composes
      before = at;
      at += sequence_length(text[at]);
      continue;
    }
    const CodePoint c = code_point_at(text.data() + at);
    if (is_composing(classes, c)) break;
    before = at;
    at += c.bytes;
  }
  if (at >= text.size()) return {text.size(), text.size()};
  size_t end = at;
  while (end < text.size()) {
    const CodePoint c = code_point_at(text.data() + end);
    if (!is_composing(classes, c)) break;
    end += c.bytes;
  }
  return {before, end};
}

std::string nfc(std::string_view text) {
  std::vector<utf8proc_int32_t> points;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text.data() + i);
    i += c.bytes;
    std::array<utf8proc_int32_t, 32> parts;
    int boundary = UTF8PROC_BOUNDCLASS_START;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value), parts.data(), parts.size(),
                                               UTF8PROC_DECOMPOSE, &boundary);
    if (count < 0 || static_cast<size_t>(count) > parts.size()) {
      throw InternalError("tokenizer.encode", "a character decomposes into " + std::to_string(count) + " parts.");
    }
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }
  sort_marks(points);
  const auto option = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const auto length = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), option);
  std::string out;
  for (utf8proc_ssize_t i = 0; i < length; ++i) append_utf8(out, static_cast<uint32_t>(points[static_cast<size_t>(i)]));
  return out;
}

}  // namespace headrace::tokenizer
