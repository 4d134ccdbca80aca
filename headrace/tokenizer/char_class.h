// Character classes as the `tokenizers` library has them (unicode_ranges.inc). The table is built once, on first use,
// and never written again: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace headrace::tokenizer {

enum CharClass : uint8_t {
  kLetter = 1,      // \p{L}
  kNumber = 2,      // \p{N}
  kSpace = 4,       // \s: White_Space
  kLineBreak = 8,   // \r and \n, which are kSpace too
  kNumeric = 16,    // what the Digits pre-tokenizer isolates
  kWord = 32,       // \w for `single_word` added tokens
  kComposing = 64,  // not inert in NFC
};

class CharClasses {
 public:
  CharClasses();
  // Bits of CharClass; `code_point` up to U+10FFFF.
  uint8_t of(uint32_t code_point) const { return pages_[page_of_[code_point >> 8] * 256u + (code_point & 255u)]; }

 private:
  std::array<uint16_t, 0x1100> page_of_;
  std::vector<uint8_t> pages_;  // pages of 256 classes, equal pages kept once
};

const CharClasses& char_classes();

}  // namespace headrace::tokenizer
