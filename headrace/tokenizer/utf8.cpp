#include "headrace/tokenizer/utf8.h"

#include <algorithm>
#include <cstring>

namespace headrace::tokenizer {
namespace {

// What may follow a lead byte (Unicode 15, table 3-7): the second byte's range depends on the lead, later ones do not.
struct Form {
  int length;  // 0: no sequence begins so
  uint8_t second_low;
  uint8_t second_high;
};

Form form_of(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

int utf8_front(std::string_view text) {
  const Form form = form_of(static_cast<uint8_t>(text[0]));
  if (form.length == 0) return -1;
  for (int i = 1; i < form.length; ++i) {
    if (static_cast<size_t>(i) == text.size()) return 0;
    const auto byte = static_cast<uint8_t>(text[static_cast<size_t>(i)]);
    const bool fits = i == 1 ? byte >= form.second_low && byte <= form.second_high : (byte & 0xC0) == 0x80;
    if (!fits) return -i;
  }
  return form.length;
}

size_t first_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    while (at + 8 <= text.size()) {
      uint64_t block;
      std::memcpy(&block, text.data() + at, 8);
      if ((block & 0x8080808080808080u) != 0) break;
      at += 8;
    }
    if (at == text.size()) break;
    const int length = utf8_front(text.substr(at));
    if (length <= 0) return at;
    at += static_cast<size_t>(length);
  }
  return at;
}

void append_utf8(std::string& out, uint32_t code_point) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace headrace::tokenizer
