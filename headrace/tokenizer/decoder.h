// The "decoder" of a tokenizer.json: ids back to text. ByteLevel, Metaspace, and the byte-fallback sequence
// (Replace..., ByteFallback, Fuse, Strip). What each token becomes is worked out while loading; then const and shared
// by all threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/tokenizer/added_tokens.h"
#include "headrace/tokenizer/decode_state.h"
#include "headrace/tokenizer/vocabulary.h"

namespace headrace::tokenizer {

class Fields;

class Decoder {
 public:
  Decoder() = default;
  // From the file's "decoder" (null: tokens joined by spaces). Throws DataError naming what is not supported.
  static Decoder from_json(const Json* value, const Vocabulary& vocabulary, const AddedTokens& added,
                           std::string_view source);

  // Appends to `out` the text that `id` completes. Ids without a token add nothing.
  void push(int32_t id, DecodeState& state, std::string& out) const;
  // Appends what is left, ill-formed bytes as U+FFFD, and resets the state.
  void finish(DecodeState& state, std::string& out) const;

 private:
  enum class Kind { kJoin, kByteLevel, kMetaspace, kFallback };
  struct Token {
    uint32_t begin = 0;  // in bytes_
    uint32_t end = 0;
    bool exists = false;
    bool is_byte = false;  // byte fallback: one byte, not text
  };
  void read(const Json& value, std::string_view source);
  void read_sequence(const Json& parts, const std::string& where, std::string_view source);
  void read_part(Fields& fields);
  void put_token(int32_t id, std::string_view spelling);
  void flush_bytes(DecodeState& state, std::string& out) const;
  void put_text(std::string_view text, DecodeState& state, std::string& out) const;

  Kind kind_ = Kind::kJoin;
  std::string mark_;               // kMetaspace
  bool drops_first_mark_ = false;  // kMetaspace
  bool byte_fallback_ = false;     // kFallback
  bool fuse_ = false;
  std::vector<std::pair<std::string, std::string>> replacements_;
  std::string strip_;  // the character that Strip takes from the front; empty: none
  uint64_t strip_count_ = 0;
  std::vector<Token> tokens_;
  std::string bytes_;
};

}  // namespace headrace::tokenizer
