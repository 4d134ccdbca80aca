#include "headrace/tokenizer/decoder.h"

#include "headrace/tokenizer/byte_alphabet.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t done = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, done)) {
    out.append(text.substr(done, at - done)).append(to);
    done = at + from.size();
  }
  return out.append(text.substr(done));
}

// Moves whole characters from the front of `pending` to `out`; ill-formed parts become U+FFFD. A beginning that may
// still become a character stays unless `all`.
void drain_utf8(std::string& pending, bool all, std::string& out) {
  size_t done = 0;
  while (done < pending.size()) {
    const std::string_view rest = std::string_view(pending).substr(done);
    const int length = utf8_front(rest);
    if (length == 0 && !all) break;
    if (length > 0) {
      out.append(rest.substr(0, static_cast<size_t>(length)));
      done += static_cast<size_t>(length);
    } else {
      out.append(kReplacementCharacter);
      done += length == 0 ? rest.size() : static_cast<size_t>(-length);
    }
  }
  pending.erase(0, done);
}

}  // namespace

// What the token becomes, but for what depends on its neighbours.
void Decoder::put_token(int32_t id, std::string_view spelling) {
  Token token;
  token.exists = true;
  token.begin = static_cast<uint32_t>(bytes_.size());
  std::string text(spelling);
  if (kind_ == Kind::kByteLevel) {
    if (const auto bytes = bytes_of_spelling(spelling)) text = *bytes;
  } else if (kind_ == Kind::kFallback) {
    for (const auto& [from, to] : replacements_) text = replaced(text, from, to);
    if (const auto byte = fallback_byte(text); byte_fallback_ && byte) {
      text.assign(1, static_cast<char>(*byte));
      token.is_byte = true;
    }
  }
  bytes_ += text;
  token.end = static_cast<uint32_t>(bytes_.size());
  tokens_[static_cast<size_t>(id)] = token;
}

void Decoder::push(int32_t id, DecodeState& state, std::string& out) const {
  if (id < 0 || static_cast<size_t>(id) >= tokens_.size()) return;
  const Token& token = tokens_[static_cast<size_t>(id)];
  if (!token.exists) return;
  const std::string_view text = std::string_view(bytes_).substr(token.begin, token.end - token.begin);
  const bool is_first = state.is_first;
  state.is_first = false;
  switch (kind_) {
    case Kind::kByteLevel:
      state.pending += text;
      drain_utf8(state.pending, false, out);
      return;
    case Kind::kFallback:
      if (token.is_byte) {
        state.pending += text;
      } else {
        flush_bytes(state, out);
        put_text(text, state, out);
      }
      return;
    case Kind::kMetaspace:
      out += replaced(text, mark_, is_first && drops_first_mark_ ? "" : " ");
      return;
    case Kind::kJoin:
      break;
  }
  if (!is_first) out += ' ';
  out += text;
}

void Decoder::finish(DecodeState& state, std::string& out) const {
  if (kind_ == Kind::kFallback) {
    flush_bytes(state, out);
  } else {
    drain_utf8(state.pending, true, out);
  }
  state = DecodeState{};
}

// A run of byte tokens is text when all of it is; else every one of its bytes is U+FFFD.
void Decoder::flush_bytes(DecodeState& state, std::string& out) const {
  if (state.pending.empty()) return;
  if (first_invalid_utf8(state.pending) == state.pending.size()) {
    put_text(state.pending, state, out);
  } else {
    for (size_t i = 0; i < state.pending.size(); ++i) put_text(kReplacementCharacter, state, out);
  }
  state.pending.clear();
}

void Decoder::put_text(std::string_view text, DecodeState& state, std::string& out) const {
  while (!state.strip_ended && !text.empty()) {
    if (state.stripped >= strip_count_ || !text.starts_with(strip_)) {
      state.strip_ended = true;
      break;
    }
    text.remove_prefix(strip_.size());
    ++state.stripped;
  }
  out += text;
}

}  // namespace headrace::tokenizer
