// Reading the "decoder" of a tokenizer.json.
#include "headrace/tokenizer/decoder.h"
#include "headrace/tokenizer/fields.h"

namespace headrace::tokenizer {

Decoder Decoder::from_json(const Json* value, const Vocabulary& vocabulary, const AddedTokens& added,
                           std::string_view source) {
  Decoder decoder;
  if (value != nullptr) decoder.read(*value, source);
  decoder.tokens_.resize(static_cast<size_t>(vocabulary.size()));
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.has(id)) continue;
    const std::string_view normalized = added.decoded_spelling(id);
    decoder.put_token(id, normalized.empty() ? vocabulary.spelling(id) : normalized);
  }
  return decoder;
}

void Decoder::read(const Json& value, std::string_view source) {
  Fields fields(value, "decoder", source);
  const std::string& type = fields.text("type");
  if (type == "Sequence") {
    read_sequence(fields.require("decoders"), "decoder", source);
    fields.finish();
  } else {
    read_part(fields);
  }
}

void Decoder::read_sequence(const Json& parts, const std::string& where, std::string_view source) {
  if (!parts.is_array()) {
    const Json none = Json::object();
    Fields(none, where, source).fail("must have a list of decoders.");
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    Fields fields(parts[i], where + "[" + std::to_string(i) + "]", source);
    const bool is_alone = parts.size() == 1;
    const std::string& type = fields.text("type");
    if (!is_alone && (type == "ByteLevel" || type == "Metaspace")) {
      fields.fail("(" + type + ") stands beside other decoders, which is not supported.");
    }
    read_part(fields);
  }
}

// One decoder. Of a sequence, those that work on single tokens must come before Fuse, and Strip after it.
void Decoder::read_part(Fields& fields) {
  const std::string& type = fields.text("type");
  const auto expect = [&](bool in_order) {
    if (!in_order) fields.fail("(" + type + ") stands in an order that is not supported.");
    kind_ = Kind::kFallback;
  };
  if (type == "ByteLevel") {
    kind_ = Kind::kByteLevel;
    for (const auto* name : {"add_prefix_space", "trim_offsets", "use_regex"}) fields.ignore(name);
  } else if (type == "Metaspace") {
    kind_ = Kind::kMetaspace;
    mark_ = fields.character("replacement");
    const bool add_prefix = fields.flag("add_prefix_space", true);
    const std::string scheme =
        fields.find("prepend_scheme") == nullptr ? (add_prefix ? "always" : "never") : fields.text("prepend_scheme");
    drops_first_mark_ = scheme != "never";
    for (const auto* name : {"split", "str_rep"}) fields.ignore(name);
  } else if (type == "Replace") {
    expect(!byte_fallback_ && !fuse_);
    Fields pattern(fields.require("pattern"), fields.where() + " Replace pattern", fields.source());
    if (pattern.find("Regex") != nullptr) pattern.fail("is a Regex, which is not supported (a String is).");
    const std::string& from = pattern.text("String");
    pattern.finish();
    if (from.empty()) fields.fail("Replace has an empty pattern.");
    replacements_.emplace_back(from, fields.text("content"));
  } else if (type == "ByteFallback") {
    expect(!byte_fallback_ && !fuse_);
    byte_fallback_ = true;
  } else if (type == "Fuse") {
    expect(!fuse_);
    fuse_ = true;
  } else if (type == "Strip") {
    expect(fuse_ && strip_.empty());
    strip_ = fields.character("content");
    strip_count_ = static_cast<uint64_t>(fields.integer("start", 0, 1024));
    fields.integer("stop", 0, 0);
  } else {
    fields.fail("has type \"" + type +
                "\", which is not supported (ByteLevel, Metaspace, Replace, ByteFallback, Fuse and Strip are).");
  }
  fields.finish();
}

}  // namespace headrace::tokenizer
