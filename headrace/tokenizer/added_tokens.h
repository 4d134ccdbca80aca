// Added and special tokens: found in the text before anything else looks at it. Longest match at the leftmost place,
// first in the text as given, then (tokens marked "normalized") in what the normalizer made of the rest. Filled while
// loading, then const and shared by all threads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/tokenizer/normalizer.h"
#include "headrace/tokenizer/vocabulary.h"

namespace headrace::tokenizer {

class Fields;

// Finds the longest of a set of strings that begins at a place. Time per place is bounded by the longest string.
class TokenTrie {
 public:
  TokenTrie();
  // False when `text` is there already. `value` >= 0; `text` not empty.
  bool insert(std::string_view text, int32_t value);
  bool empty() const { return nodes_.size() == 1; }
  bool may_begin(char c) const { return begins_[static_cast<uint8_t>(c)]; }
  struct Match {
    int32_t value;  // -1: none
    size_t bytes;
  };
  Match longest(std::string_view text) const;

 private:
  struct Node {
    int32_t value = -1;
    std::vector<std::pair<uint8_t, uint32_t>> next;
  };
  std::vector<Node> nodes_;
  std::array<bool, 256> begins_{};
};

class AddedTokens {
 public:
  // Part of a text: an added token's bytes, or what lies between.
  struct Cut {
    size_t begin;
    size_t end;
    int32_t id;  // -1: not an added token
  };
  static constexpr size_t kMaxBytes = 1024;  // of one token

  AddedTokens() = default;
  // Reads the file's "added_tokens"; those that the model's vocabulary lacks are added to it. Throws DataError naming
  // what is wrong or what the `tokenizers` library would number differently.
  static AddedTokens from_json(const Json* value, Vocabulary& vocabulary, const Normalizer& normalizer,
                               std::string_view source);

  // Replaces `cuts` by those of `text`, which cover it; `normalized` chooses the set of tokens.
  void cut(std::string_view text, bool normalized, std::vector<Cut>& cuts) const;

  bool is_special(int32_t id) const;
  // What a decoder sees of an added token: its normalized spelling; empty when `id` is none.
  std::string_view decoded_spelling(int32_t id) const;

 private:
  struct Token {
    int32_t id;
    bool single_word;
    bool lstrip;
    bool rstrip;
    bool special;
    std::string spelling;  // normalized where the token is
  };
  void add(Fields& fields, Vocabulary& vocabulary, const Normalizer& normalizer);
  static void check_id(const Fields& fields, std::string_view content, int32_t id, int64_t next_id,
                       Vocabulary& vocabulary);
  const Token* find(int32_t id) const;

  std::vector<Token> tokens_;
  int64_t next_id_ = 0;  // while loading: what the library gives to the next token that the model lacks
  std::vector<int32_t> index_of_id_;
  TokenTrie plain_;
  TokenTrie normalized_;
};

}  // namespace headrace::tokenizer
