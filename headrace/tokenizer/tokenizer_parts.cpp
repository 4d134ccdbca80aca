#include "headrace/tokenizer/tokenizer_parts.h"

#include "headrace/base/errors.h"
#include "headrace/tokenizer/fields.h"

namespace headrace::tokenizer {

TokenizerParts::TokenizerParts(const Json& file, std::string_view source) {
  Fields fields(file, "the file", source);
  if (const Json* version = fields.find("version"); version != nullptr && *version != "1.0") {
    fields.fail("has version " + version->dump() + ", which is not supported (\"1.0\" is).");
  }
  fields.refuse("truncation");
  fields.refuse("padding");
  normalizer = Normalizer::from_json(fields.find("normalizer"), source);
  pre_tokenizer = PreTokenizer::from_json(fields.find("pre_tokenizer"), source);
  bpe = Bpe::from_json(fields.require("model"), pre_tokenizer.byte_level(), vocabulary, source);
  added = AddedTokens::from_json(fields.find("added_tokens"), vocabulary, normalizer, source);
  decoder = Decoder::from_json(fields.find("decoder"), vocabulary, added, source);
  if (const Json* processor = fields.find("post_processor")) {
    read_post_processor(*processor, "post_processor", source, 0);
  }
  fields.finish();
}

// Post-processors add special tokens, which encode() never does, and trim offsets, which here are those of the bytes.
// Only what stands before a single text is kept.
void TokenizerParts::read_post_processor(const Json& value, const std::string& where, std::string_view source,
                                         int depth) {
  Fields fields(value, where, source);
  const std::string& type = fields.text("type");
  if (type == "Sequence") {
    const Json& parts = fields.require("processors");
    if (!parts.is_array() || depth > 8) fields.fail("must be a list of processors, at most 8 deep.");
    for (size_t i = 0; i < parts.size(); ++i) {
      read_post_processor(parts[i], where + "[" + std::to_string(i) + "]", source, depth + 1);
    }
    return;
  }
  if (type == "ByteLevel") return;
  if (type != "TemplateProcessing") {
    fields.fail("has type \"" + type + "\", which is not supported (TemplateProcessing, ByteLevel and Sequence are).");
  }
  const Json& single = fields.require("single");
  if (!single.is_array()) fields.fail("\"single\" must be a list.");
  for (const Json& item : single) {
    if (!item.is_object() || !item.contains("SpecialToken")) break;
    Fields special(item["SpecialToken"], where + " SpecialToken", source);
    const std::string& token = special.text("id");
    const auto id = vocabulary.find(token);
    if (!id) special.fail("names \"" + token + "\", which is not in the vocabulary.");
    prefix_special_ids.push_back(*id);
  }
}

std::unique_ptr<EncodeMemory> TokenizerParts::take_memory() const {
  {
    const std::lock_guard lock(mutex_);
    if (!pool_.empty()) {
      auto memory = std::move(pool_.back());
      pool_.pop_back();
      return memory;
    }
  }
  return std::make_unique<EncodeMemory>();
}

void TokenizerParts::return_memory(std::unique_ptr<EncodeMemory> memory) const {
  const std::lock_guard lock(mutex_);
  pool_.push_back(std::move(memory));
}

}  // namespace headrace::tokenizer
