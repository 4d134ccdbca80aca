// Byte-pair encoding of one word: byte-level (every byte a symbol) or over characters, with byte fallback or an unknown
// token. Merges by rank, leftmost first: up to kShortWord symbols by scanning, above by a heap, so that a text which is
// one long word costs n log n. Const and shared by all threads; memory and cache come from the caller.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/tokenizer/merge_table.h"
#include "headrace/tokenizer/vocabulary.h"
#include "headrace/tokenizer/word_cache.h"

namespace headrace::tokenizer {

// A token within a word: the word's bytes [begin, end).
struct Symbol {
  int32_t id;
  uint32_t begin;
  uint32_t end;
};

class Bpe {
 public:
  // One thread's working memory.
  struct Memory {
    WordCache cache;
    std::vector<Symbol> symbols;
    std::vector<Merge> merges;  // of symbol i with i + 1
    struct Candidate {
      uint32_t rank;
      uint32_t position;
      int32_t id;
    };
    std::vector<Candidate> heap;
    std::vector<uint32_t> previous;
    std::vector<uint32_t> next;
  };

  static constexpr size_t kShortWord = 48;  // [symbols]

  // Reads the file's "model" and fills `vocabulary`, which must outlive the Bpe and not move. `byte_level`: words come
  // as bytes and the vocabulary spells them in the byte alphabet. Throws DataError naming what is wrong or not
  // supported.
  static Bpe from_json(const Json& model, bool byte_level, Vocabulary& vocabulary, std::string_view source);

  // Appends the ids of `word` (valid UTF-8 or, byte-level, any bytes; under 4 GiB).
  void encode(std::string_view word, Memory& memory, std::vector<int32_t>& ids) const;

  // The same ids with their bytes, in memory.symbols until its next use; no cache.
  void encode_symbols(std::string_view word, Memory& memory) const;

 private:
  void read_vocabulary(const Json& vocab, std::string_view source);
  void read_merges(const Json& merges, std::string_view source);
  void read_bytes(bool byte_fallback, std::string_view source);
  void encode_part(std::string_view part, Memory& memory, std::vector<int32_t>& ids) const;
  void split_symbols(std::string_view word, std::vector<Symbol>& symbols) const;
  void merge_short(Memory& memory) const;
  void merge_long(Memory& memory) const;
  std::optional<int32_t> whole_word(std::string_view word) const;

  bool byte_level_ = false;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  bool parts_at_marks_ = false;  // no merge joins anything to a following "▁": words may be cut in front of it
  int32_t unknown_ = -1;         // -1: characters without a token are dropped
  std::array<int32_t, 256> byte_ids_{};             // byte-level: the byte's symbol; byte fallback: "<0x..>"; -1: none
  std::unordered_map<std::string, int32_t> words_;  // byte-level with ignore_merges: whole words as bytes
  MergeTable merges_;
  Vocabulary* vocabulary_ = nullptr;
};

}  // namespace headrace::tokenizer
