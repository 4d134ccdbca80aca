// UTF-8 as Unicode's table 3-7 has it: no overlong forms, no surrogates, nothing above U+10FFFF. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::tokenizer {

// Byte index of the first ill-formed sequence, or text.size() when there is none.
size_t first_invalid_utf8(std::string_view text);

// Bytes of the sequence at the front of `text`: its length when it is well formed; 0 when it is a proper prefix of a
// well-formed sequence cut off by the end; otherwise minus the length of the maximal ill-formed part (at least 1),
// which decoders replace by one U+FFFD. `text` must not be empty.
int utf8_front(std::string_view text);

// Appends `code_point`, which must be a scalar value.
void append_utf8(std::string& out, uint32_t code_point);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Length of the sequence that `lead` begins, in text known to be valid.
inline size_t sequence_length(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

struct CodePoint {
  uint32_t value;
  uint32_t bytes;
};

// The code point at `p`, in text known to be valid.
inline CodePoint code_point_at(const char* p) {
  const auto at = [p](int i) { return static_cast<uint32_t>(static_cast<uint8_t>(p[i])); };
  const uint32_t lead = at(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (at(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (at(1) & 0x3F) << 6 | (at(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (at(1) & 0x3F) << 12 | (at(2) & 0x3F) << 6 | (at(3) & 0x3F), 4};
}

// Start of the sequence that ends before `end`, in text known to be valid; `end` must be over 0.
inline size_t previous_start(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace headrace::tokenizer
