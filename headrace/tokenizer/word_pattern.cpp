#include "headrace/tokenizer/word_pattern.h"

#include <array>

#include "headrace/tokenizer/char_class.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

constexpr std::string_view kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Char {
  uint8_t classes;
  uint32_t bytes;  // 0 at the end of the text
};

constexpr uint8_t kVisibleMask = kLetter | kNumber | kSpace;

// Walks one text; the alternatives of the patterns are its methods, in the order in which the regexes try them.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), classes_(char_classes()) {}

  Char at(size_t i) const {
    if (i >= text_.size()) return {0, 0};
    const CodePoint c = code_point_at(text_.data() + i);
    return {classes_.of(c.value), c.bytes};
  }
  static bool is_other(Char c) { return c.bytes != 0 && (c.classes & kVisibleMask) == 0; }

  // End of the run of characters with any bit of `wanted`.
  size_t run(size_t i, uint8_t wanted) const {
    for (Char c = at(i); (c.classes & wanted) != 0; c = at(i)) i += c.bytes;
    return i;
  }
  size_t run_other(size_t i) const {
    for (Char c = at(i); is_other(c); c = at(i)) i += c.bytes;
    return i;
  }

  // 's 't 'm 'd 're 've 'll after an apostrophe at `i`; `i` itself when there is none. Without case, U+017F is an s.
  size_t contraction(size_t i, bool ignore_case) const {
    const auto letter = [&](size_t k) {
      if (k >= text_.size()) return '\0';
      const char c = text_[k];
      return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    const char first = letter(i + 1);
    const char second = letter(i + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return i + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return i + 3;
    if (first == 'l' && second == 'l') return i + 3;
    if (ignore_case && text_.substr(i + 1, 2) == "\xC5\xBF") return i + 3;
    return i;
  }

  // \s+(?!\S)|\s+ : a run that text follows leaves its last character to that text, unless it is the only one.
  size_t spaces(size_t begin) const {
    const size_t end = run(begin, kSpace);
    if (end == text_.size()) return end;
    const size_t last = previous_start(text_, end);
    return last > begin ? last : end;
  }

  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
  const CharClasses& classes_;
};

size_t gpt2_end(const Scanner& scan, size_t begin) {
  const char byte = scan.text()[begin];
  if (byte == '\'') {
    const size_t end = scan.contraction(begin, false);
    if (end != begin) return end;
  }
  Char c = scan.at(begin);
  size_t start = begin;
  if (byte == ' ') {
    start = begin + 1;
    c = scan.at(start);
  }
  if (c.classes & kLetter) return scan.run(start + c.bytes, kLetter);
  if (c.classes & kNumber) return scan.run(start + c.bytes, kNumber);
  if (Scanner::is_other(c)) return scan.run_other(start + c.bytes);
  return scan.spaces(begin);
}

// \s*[\r\n]+ : up to the last line break of the run of spaces at `begin`; `begin` when it holds none.
size_t line_breaks_end(const Scanner& scan, size_t begin) {
  size_t end = begin;
  size_t i = begin;
  for (Char c = scan.at(i); (c.classes & kSpace) != 0; c = scan.at(i)) {
    i += c.bytes;
    if (c.classes & kLineBreak) end = i;
  }
  return end;
}

size_t llama3_end(const Scanner& scan, size_t begin, int max_digits) {
  const char byte = scan.text()[begin];
  if (byte == '\'') {
    const size_t end = scan.contraction(begin, true);
    if (end != begin) return end;
  }
  const Char c = scan.at(begin);
  if (c.classes & kLetter) return scan.run(begin + c.bytes, kLetter);
  if (c.classes & kNumber) {
    size_t end = begin + c.bytes;
    for (int digits = 1; digits < max_digits; ++digits) {
      const Char next = scan.at(end);
      if ((next.classes & kNumber) == 0) break;
      end += next.bytes;
    }
    return end;
  }
  const size_t after = begin + c.bytes;
  const Char next = scan.at(after);
  if ((c.classes & kLineBreak) == 0 && (next.classes & kLetter) != 0) return scan.run(after + next.bytes, kLetter);
  if (Scanner::is_other(c)) return scan.run(scan.run_other(after), kLineBreak);
  if (byte == ' ' && Scanner::is_other(next)) return scan.run(scan.run_other(after + next.bytes), kLineBreak);
  const size_t line_end = line_breaks_end(scan, begin);
  return line_end != begin ? line_end : scan.spaces(begin);
}

}  // namespace

std::optional<WordPattern> word_pattern_of(std::string_view regex) {
  for (const auto pattern : {WordPattern::kGpt2, WordPattern::kLlama3, WordPattern::kQwen2}) {
    if (regex == regex_of(pattern)) return pattern;
  }
  return std::nullopt;
}

std::string_view regex_of(WordPattern pattern) {
  switch (pattern) {
    case WordPattern::kGpt2:
      return kGpt2Regex;
    case WordPattern::kLlama3:
      return kLlama3Regex;
    case WordPattern::kQwen2:
      break;
  }
  return kQwen2Regex;
}

size_t word_end(WordPattern pattern, std::string_view text, size_t begin) {
  const Scanner scan(text);
  switch (pattern) {
    case WordPattern::kGpt2:
      return gpt2_end(scan, begin);
    case WordPattern::kLlama3:
      return llama3_end(scan, begin, 3);
    case WordPattern::kQwen2:
      break;
  }
  return llama3_end(scan, begin, 1);
}

}  // namespace headrace::tokenizer
