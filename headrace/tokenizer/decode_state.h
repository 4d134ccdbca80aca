// Where one stream of ids stands between two calls of a decoder. A plain value; one thread.
#pragma once

#include <cstdint>
#include <string>

namespace headrace::tokenizer {

// Text comes out as soon as no later id can change it.
struct DecodeState {
  bool is_first = true;      // no token has been decoded yet
  uint64_t stripped = 0;     // leading characters that Strip has taken
  bool strip_ended = false;  // something else than Strip's character has come
  std::string pending = {};  // bytes that are not yet text
};

}  // namespace headrace::tokenizer
