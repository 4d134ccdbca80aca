#include "headrace/tokenizer/normalizer.h"

#include "headrace/tokenizer/fields.h"
#include "headrace/tokenizer/nfc.h"

namespace headrace::tokenizer {
namespace {

bool rewrite_nfc(const Piece& piece, Rewrite& out, bool track) {
  const std::string_view text = piece.text;
  ComposingSpan span = next_composing_span(text, 0);
  if (span.begin == text.size()) return false;
  out.begin(track);
  size_t copied = 0;
  while (span.begin < text.size()) {
    out.copy(piece, copied, span.begin);
    const std::string_view old = text.substr(span.begin, span.end - span.begin);
    const std::string changed = nfc(old);
    if (changed == old) {
      out.copy(piece, span.begin, span.end);
    } else {
      out.put(changed, piece, span.begin, span.end);
    }
    copied = span.end;
    span = next_composing_span(text, copied);
  }
  out.copy(piece, copied, text.size());
  return true;
}

bool rewrite_replace(std::string_view from, std::string_view to, const Piece& piece, Rewrite& out, bool track) {
  size_t at = piece.text.find(from);
  if (at == std::string_view::npos) return false;
  out.begin(track);
  size_t copied = 0;
  for (; at != std::string_view::npos; at = piece.text.find(from, copied)) {
    out.copy(piece, copied, at);
    out.put(to, piece, at, at + from.size());
    copied = at + from.size();
  }
  out.copy(piece, copied, piece.text.size());
  return true;
}

}  // namespace

Normalizer Normalizer::from_json(const Json* value, std::string_view source) {
  Normalizer normalizer;
  if (value != nullptr) normalizer.add(*value, "normalizer", source, 0);
  return normalizer;
}

void Normalizer::add(const Json& value, const std::string& where, std::string_view source, int depth) {
  Fields fields(value, where, source);
  const std::string& type = fields.text("type");
  if (type == "Sequence") {
    const Json& parts = fields.require("normalizers");
    if (!parts.is_array()) fields.fail("\"normalizers\" must be a list.");
    if (depth > 8) fields.fail("nests deeper than 8 sequences.");
    for (size_t i = 0; i < parts.size(); ++i) add(parts[i], where + "[" + std::to_string(i) + "]", source, depth + 1);
  } else if (type == "NFC") {
    steps_.push_back({Kind::kNfc, "", ""});
  } else if (type == "Prepend") {
    steps_.push_back({Kind::kPrepend, "", fields.text("prepend")});
  } else if (type == "Replace") {
    Fields pattern(fields.require("pattern"), where + " Replace pattern", source);
    if (pattern.find("Regex") != nullptr) pattern.fail("is a Regex, which is not supported (a String is).");
    const std::string& from = pattern.text("String");
    pattern.finish();
    if (from.empty()) fields.fail("Replace has an empty pattern.");
    steps_.push_back({Kind::kReplace, from, fields.text("content")});
  } else {
    fields.fail("has type \"" + type + "\", which is not supported (NFC, Prepend, Replace and Sequence are).");
  }
  fields.finish();
}

bool Normalizer::run(const Step& step, const Piece& piece, Rewrite& out, bool track) {
  switch (step.kind) {
    case Kind::kNfc:
      return rewrite_nfc(piece, out, track);
    case Kind::kReplace:
      return rewrite_replace(step.from, step.to, piece, out, track);
    case Kind::kPrepend:
      break;
  }
  if (piece.text.empty()) return false;
  out.begin(track);
  out.put(step.to, piece, 0, 0);
  out.copy(piece, 0, piece.text.size());
  return true;
}

Piece Normalizer::apply(const Piece& piece, Memory& memory, bool track) const {
  Piece now = piece;
  size_t next = 0;
  for (const Step& step : steps_) {
    if (!run(step, now, memory[next], track)) continue;
    now = memory[next].piece(now);
    next = 1 - next;
  }
  return now;
}

}  // namespace headrace::tokenizer
