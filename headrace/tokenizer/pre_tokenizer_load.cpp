// Reading the "pre_tokenizer" of a tokenizer.json.
#include <array>

#include "headrace/tokenizer/fields.h"
#include "headrace/tokenizer/pre_tokenizer.h"

namespace headrace::tokenizer {

PreTokenizer PreTokenizer::from_json(const Json* value, std::string_view source) {
  PreTokenizer out;
  if (value != nullptr) out.add(*value, "pre_tokenizer", source, 0);
  return out;
}

void PreTokenizer::add(const Json& value, const std::string& where, std::string_view source, int depth) {
  Fields fields(value, where, source);
  const std::string& type = fields.text("type");
  if (byte_level_) fields.fail("(" + type + ") stands after ByteLevel, which is not supported.");
  if (type == "Sequence") {
    const Json& parts = fields.require("pretokenizers");
    if (!parts.is_array()) fields.fail("\"pretokenizers\" must be a list.");
    if (depth > 8 || parts.size() > 64) fields.fail("is a sequence too long or too deep (64 members, 8 levels).");
    for (size_t i = 0; i < parts.size(); ++i) add(parts[i], where + "[" + std::to_string(i) + "]", source, depth + 1);
  } else if (type == "Split") {
    add_split(fields);
  } else if (type == "ByteLevel") {
    add_byte_level(fields);
  } else if (type == "Digits") {
    Stage stage{fields.flag("individual_digits", false) ? Kind::kDigits : Kind::kDigitRuns};
    stage.behavior = Behavior::kContiguous;
    stages_.push_back(std::move(stage));
  } else if (type == "Metaspace") {
    add_metaspace(fields);
  } else {
    fields.fail("has type \"" + type +
                "\", which is not supported (Split, ByteLevel, Digits, Metaspace and Sequence are).");
  }
  fields.finish();
}

void PreTokenizer::add_split(Fields& fields) {
  constexpr std::array<std::pair<std::string_view, Behavior>, 5> kBehaviors = {
      {{"Isolated", Behavior::kIsolated},
       {"Removed", Behavior::kRemoved},
       {"MergedWithPrevious", Behavior::kMergedWithPrevious},
       {"MergedWithNext", Behavior::kMergedWithNext},
       {"Contiguous", Behavior::kContiguous}}};
  Stage stage{Kind::kRegex};
  const std::string& behavior = fields.text("behavior");
  bool known = false;
  for (const auto& [name, value] : kBehaviors) {
    if (behavior != name) continue;
    stage.behavior = value;
    known = true;
  }
  if (!known) fields.fail("has the behavior \"" + behavior + "\", which is not supported.");
  stage.invert = fields.flag("invert", false);
  Fields pattern(fields.require("pattern"), fields.where() + " pattern", fields.source());
  if (pattern.find("Regex") == nullptr) {
    stage.kind = Kind::kLiteral;
    stage.literal = pattern.text("String");
    if (stage.literal.empty()) fields.fail("splits at an empty string.");
  } else {
    const std::string& regex = pattern.text("Regex");
    const auto scanner = word_pattern_of(regex);
    // The scanners' patterns leave nothing between matches, so these two settings keep the same words.
    const bool keeps_matches =
        stage.behavior == Behavior::kIsolated || (stage.behavior == Behavior::kRemoved && stage.invert);
    if (scanner && keeps_matches) {
      stage.kind = Kind::kPattern;
      stage.pattern = *scanner;
    } else {
      stage.regex = Regex::compile(regex, fields.source());
    }
  }
  pattern.finish();
  stages_.push_back(std::move(stage));
}

void PreTokenizer::add_byte_level(Fields& fields) {
  if (fields.flag("add_prefix_space", true)) stages_.push_back(Stage{Kind::kPrefixSpace});
  if (fields.flag("use_regex", true)) stages_.push_back(Stage{Kind::kPattern});
  fields.ignore("trim_offsets");  // offsets always cover the token's bytes
  byte_level_ = true;
}

void PreTokenizer::add_metaspace(Fields& fields) {
  if (!stages_.empty()) fields.fail("(Metaspace) is not the first pre-tokenizer, which is not supported.");
  Stage stage{Kind::kMetaspace};
  stage.literal = fields.character("replacement");
  stage.split = fields.flag("split", true);
  stage.behavior = Behavior::kMergedWithNext;
  const bool add_prefix = fields.flag("add_prefix_space", true);
  const std::string scheme =
      fields.find("prepend_scheme") == nullptr ? (add_prefix ? "always" : "never") : fields.text("prepend_scheme");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    fields.fail("has the prepend_scheme \"" + scheme + "\", which is not supported.");
  }
  if (!add_prefix && scheme != "never") fields.fail("has add_prefix_space false and prepend_scheme " + scheme + ".");
  stage.prefix = scheme != "never";
  stage.only_at_start = scheme == "first";
  fields.ignore("str_rep");
  stages_.push_back(std::move(stage));
}

}  // namespace headrace::tokenizer
