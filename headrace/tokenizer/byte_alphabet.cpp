#include "headrace/tokenizer/byte_alphabet.h"

#include <array>

#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

// Bytes that are printable in Latin-1 spell themselves; the others get the code points from U+0100 on, in order.
bool spells_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint32_t, 256> code_point{};
  std::array<int16_t, 0x200> byte{};  // -1: not in the alphabet
  Alphabet() {
    byte.fill(-1);
    uint32_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      code_point[b] = spells_itself(b) ? b : next++;
      byte[code_point[b]] = static_cast<int16_t>(b);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string spelling_of_byte(uint8_t byte) {
  std::string out;
  append_utf8(out, alphabet().code_point[byte]);
  return out;
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  const Alphabet& letters = alphabet();
  std::string out;
  for (size_t i = 0; i < spelling.size();) {
    const CodePoint c = code_point_at(spelling.data() + i);
    i += c.bytes;
    if (c.value >= letters.byte.size() || letters.byte[c.value] < 0) return std::nullopt;
    out.push_back(static_cast<char>(letters.byte[c.value]));
  }
  return out;
}

std::optional<uint8_t> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const int high = hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

}  // namespace headrace::tokenizer
