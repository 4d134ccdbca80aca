// The "normalizer" of a tokenizer.json: NFC, Prepend, Replace of a string, and Sequences of them. Const and shared by
// all threads; the working memory comes from the caller.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/tokenizer/piece.h"

namespace headrace::tokenizer {

class Normalizer {
 public:
  using Memory = std::array<Rewrite, 2>;

  Normalizer() = default;
  // From the file's "normalizer" (null: none). Throws DataError naming what is not supported.
  static Normalizer from_json(const Json* value, std::string_view source);

  // The normalized piece, whose bytes are `piece`'s own when nothing changed, else `memory`'s until its next use.
  // `track` asks for origins.
  Piece apply(const Piece& piece, Memory& memory, bool track) const;

 private:
  enum class Kind { kNfc, kPrepend, kReplace };
  struct Step {
    Kind kind;
    std::string from;  // kReplace
    std::string to;    // kReplace, kPrepend
  };
  void add(const Json& value, const std::string& where, std::string_view source, int depth);
  static bool run(const Step& step, const Piece& piece, Rewrite& out, bool track);

  std::vector<Step> steps_;
};

}  // namespace headrace::tokenizer
