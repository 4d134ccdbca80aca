// The "pre_tokenizer" of a tokenizer.json: cuts a normalized text into the words that the model encodes. Split,
// ByteLevel (last), Digits, Metaspace (first) and Sequences of them. Const and shared by all threads; memory comes from
// the caller.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/tokenizer/piece.h"
#include "headrace/tokenizer/regex.h"
#include "headrace/tokenizer/word_pattern.h"

namespace headrace::tokenizer {

class Fields;

class PreTokenizer {
 public:
  // What a pattern matched, or what lies between matches.
  struct Match {
    size_t begin;
    size_t end;
    bool is_match;
  };
  struct Memory {
    RegexMemory regex;
    Rewrite rewrite;
    std::vector<std::vector<Match>> matches;  // one per stage: stages nest
  };

  PreTokenizer() = default;
  // From the file's "pre_tokenizer" (null: the whole text is one word). Throws DataError naming what is not supported.
  static PreTokenizer from_json(const Json* value, std::string_view source);

  // True when the words are to be encoded byte by byte.
  bool byte_level() const { return byte_level_; }

  // Calls emit(const Piece&) for every word of `piece` in order; none is empty. `track` asks for origins in rewritten
  // pieces. A word's bytes are valid during the call.
  template <typename Emit>
  void run(const Piece& piece, Memory& memory, bool track, Emit&& emit) const {
    if (memory.matches.size() < stages_.size()) memory.matches.resize(stages_.size());
    run_from(0, piece, memory, track, emit);
  }

 private:
  enum class Kind { kPattern, kRegex, kLiteral, kDigits, kDigitRuns, kMetaspace, kPrefixSpace };
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
  struct Stage {
    Kind kind;
    WordPattern pattern = WordPattern::kGpt2;  // kPattern
    std::optional<Regex> regex = {};           // kRegex
    std::string literal = {};                  // kLiteral; kMetaspace: the mark
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
    bool only_at_start = false;  // kMetaspace: the prefix
    bool prefix = false;         // kMetaspace
    bool split = false;          // kMetaspace
  };

  void add(const Json& value, const std::string& where, std::string_view source, int depth);
  void add_split(Fields& fields);
  void add_byte_level(Fields& fields);
  void add_metaspace(Fields& fields);
  static void find_matches(const Stage& stage, std::string_view text, RegexMemory& memory, std::vector<Match>& out);
  static void apply_behavior(Behavior behavior, std::vector<Match>& matches);
  static Piece rewrite(const Stage& stage, const Piece& piece, Rewrite& out, bool track);
  static size_t digit_begin(std::string_view text, size_t from);

  template <typename Emit>
  void run_from(size_t index, const Piece& piece, Memory& memory, bool track, Emit& emit) const {
    if (piece.text.empty()) return;
    if (index == stages_.size()) return emit(piece);
    const Stage& stage = stages_[index];
    const std::string_view text = piece.text;
    switch (stage.kind) {
      case Kind::kPattern:
        for (size_t begin = 0; begin < text.size();) {
          const size_t end = word_end(stage.pattern, text, begin);
          run_from(index + 1, piece.slice(begin, end), memory, track, emit);
          begin = end;
        }
        return;
      case Kind::kDigits:
        for (size_t begin = 0; begin < text.size();) {
          size_t end = digit_begin(text, begin);
          if (end == begin) end = begin + digit_bytes(text, begin);
          run_from(index + 1, piece.slice(begin, end), memory, track, emit);
          begin = end;
        }
        return;
      case Kind::kPrefixSpace:
        return run_from(index + 1, rewrite(stage, piece, memory.rewrite, track), memory, track, emit);
      case Kind::kMetaspace:
        if (!stage.split) {
          return run_from(index + 1, rewrite(stage, piece, memory.rewrite, track), memory, track, emit);
        }
        return run_matches(index, rewrite(stage, piece, memory.rewrite, track), memory, track, emit);
      default:
        return run_matches(index, piece, memory, track, emit);
    }
  }

  template <typename Emit>
  void run_matches(size_t index, const Piece& piece, Memory& memory, bool track, Emit& emit) const {
    std::vector<Match>& matches = memory.matches[index];
    find_matches(stages_[index], piece.text, memory.regex, matches);
    apply_behavior(stages_[index].behavior, matches);
    for (const Match& match : matches) run_from(index + 1, piece.slice(match.begin, match.end), memory, track, emit);
  }

  static size_t digit_bytes(std::string_view text, size_t at);

  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace headrace::tokenizer
