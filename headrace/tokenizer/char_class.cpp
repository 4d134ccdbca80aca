#include "headrace/tokenizer/char_class.h"

#include <cstring>
#include <map>
#include <span>
#include <string>

namespace headrace::tokenizer {
namespace {

struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

#include "headrace/tokenizer/unicode_ranges.inc"

// White_Space has not changed since Unicode 6.3.
constexpr CodePointRange kSpaceRanges[] = {
    {0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};
constexpr CodePointRange kLineBreakRanges[] = {{0xa, 0xa}, {0xd, 0xd}};

void mark(std::vector<uint8_t>& flat, std::span<const CodePointRange> ranges, CharClass bit) {
  for (const auto& range : ranges) {
    for (uint32_t c = range.first; c <= range.last; ++c) flat[c] = static_cast<uint8_t>(flat[c] | bit);
  }
}

}  // namespace

CharClasses::CharClasses() {
  std::vector<uint8_t> flat(0x110000, 0);
  mark(flat, kLetterRanges, kLetter);
  mark(flat, kNumberRanges, kNumber);
  mark(flat, kNumericRanges, kNumeric);
  mark(flat, kWordRanges, kWord);
  mark(flat, kComposingRanges, kComposing);
  mark(flat, kSpaceRanges, kSpace);
  mark(flat, kLineBreakRanges, kLineBreak);
  std::map<std::string, uint16_t> known;
  for (size_t page = 0; page < page_of_.size(); ++page) {
    const std::string bytes(reinterpret_cast<const char*>(flat.data() + page * 256), 256);
    const auto [found, is_new] = known.emplace(bytes, static_cast<uint16_t>(known.size()));
    if (is_new) pages_.insert(pages_.end(), bytes.begin(), bytes.end());
    page_of_[page] = found->second;
  }
}

const CharClasses& char_classes() {
  static const CharClasses classes;
  return classes;
}

}  // namespace headrace::tokenizer
