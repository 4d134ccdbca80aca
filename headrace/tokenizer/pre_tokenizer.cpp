#include "headrace/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "headrace/tokenizer/char_class.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

bool is_numeric(CodePoint c) { return (char_classes().of(c.value) & kNumeric) != 0; }

}  // namespace

// First numeric character at or after `from`.
size_t PreTokenizer::digit_begin(std::string_view text, size_t from) {
  while (from < text.size()) {
    const char byte = text[from];
    if (static_cast<uint8_t>(byte) < 0x80) {
      if (byte >= '0' && byte <= '9') return from;
      ++from;
      continue;
    }
    const CodePoint c = code_point_at(text.data() + from);
    if (is_numeric(c)) return from;
    from += c.bytes;
  }
  return text.size();
}

size_t PreTokenizer::digit_bytes(std::string_view text, size_t at) { return sequence_length(text[at]); }

// Matches and what lies between them, in order, covering `text`.
void PreTokenizer::find_matches(const Stage& stage, std::string_view text, RegexMemory& memory,
                                std::vector<Match>& out) {
  out.clear();
  size_t done = 0;
  const auto put = [&](size_t begin, size_t end) {
    if (done != begin) out.push_back({done, begin, stage.invert});
    out.push_back({begin, end, !stage.invert});
    done = end;
  };
  if (stage.kind == Kind::kDigitRuns) {
    for (size_t at = digit_begin(text, 0); at < text.size(); at = digit_begin(text, done)) {
      put(at, at + digit_bytes(text, at));
    }
  } else if (stage.kind == Kind::kRegex) {
    // Oniguruma's iteration: an empty match right after the last match is passed over by one character.
    std::optional<size_t> last_end;
    for (size_t from = 0; from <= text.size();) {
      const auto found = stage.regex->find(text, from, memory);
      if (!found) break;
      const auto [begin, end] = *found;
      if (begin == end && last_end == end) {
        from = end < text.size() ? end + sequence_length(text[end]) : end + 1;
        continue;
      }
      put(begin, end);
      from = end;
      last_end = end;
    }
  } else {
    for (size_t at = text.find(stage.literal); at != std::string_view::npos; at = text.find(stage.literal, done)) {
      put(at, at + stage.literal.size());
    }
  }
  if (done < text.size()) out.push_back({done, text.size(), stage.invert});
}

// Turns matches into the pieces that the behaviour leaves.
void PreTokenizer::apply_behavior(Behavior behavior, std::vector<Match>& matches) {
  if (behavior == Behavior::kIsolated) return;
  if (behavior == Behavior::kRemoved) {
    std::erase_if(matches, [](const Match& match) { return match.is_match; });
    return;
  }
  const bool backwards = behavior == Behavior::kMergedWithNext;
  if (backwards) std::reverse(matches.begin(), matches.end());
  size_t kept = 0;
  bool previous = false;
  for (const Match match : matches) {
    const bool joins = behavior == Behavior::kContiguous ? match.is_match == previous : match.is_match && !previous;
    if (joins && kept > 0) {
      Match& last = matches[kept - 1];
      (backwards ? last.begin : last.end) = backwards ? match.begin : match.end;
    } else {
      matches[kept++] = match;
    }
    previous = match.is_match;
  }
  matches.resize(kept);
  if (backwards) std::reverse(matches.begin(), matches.end());
}

// The text with its prefix and, for Metaspace, with marks for spaces; `piece` itself when nothing changes.
Piece PreTokenizer::rewrite(const Stage& stage, const Piece& piece, Rewrite& out, bool track) {
  const std::string_view text = piece.text;
  if (stage.kind == Kind::kPrefixSpace) {
    if (text.starts_with(' ')) return piece;
    out.begin(track);
    out.put(" ", piece, 0, 0);
    out.copy(piece, 0, text.size());
    return out.piece(piece);
  }
  out.begin(track);
  const bool starts_marked = text.starts_with(stage.literal) || text.starts_with(' ');
  if (stage.prefix && !starts_marked && (!stage.only_at_start || piece.at_start)) out.put(stage.literal, piece, 0, 0);
  size_t done = 0;
  for (size_t at = text.find(' '); at != std::string_view::npos; at = text.find(' ', done)) {
    out.copy(piece, done, at);
    out.put(stage.literal, piece, at, at + 1);
    done = at + 1;
  }
  out.copy(piece, done, text.size());
  return out.piece(piece);
}

}  // namespace headrace::tokenizer
