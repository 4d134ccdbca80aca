// Reading the "model" of a tokenizer.json.
#include "headrace/tokenizer/bpe.h"
#include "headrace/tokenizer/byte_alphabet.h"
#include "headrace/tokenizer/fields.h"

namespace headrace::tokenizer {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, which stands for a space
constexpr std::string_view kHexDigits = "0123456789ABCDEF";

struct Pair {
  std::string_view left;
  std::string_view right;
};

// "left right" or ["left", "right"]. A token that holds a space can only be written the second way.
Pair pair_of(const Json& merge, size_t index, const Fields& fields) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
  }
  if (merge.is_string()) {
    const std::string_view text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  }
  fields.fail("merge " + std::to_string(index) + " must be two tokens.");
}

std::string fallback_spelling(unsigned byte) {
  return std::string("<0x") + kHexDigits[byte >> 4] + kHexDigits[byte & 15] + ">";
}

}  // namespace

Bpe Bpe::from_json(const Json& model, bool byte_level, Vocabulary& vocabulary, std::string_view source) {
  Fields fields(model, "model", source);
  const Json* type = fields.find("type");
  if (type != nullptr && *type != "BPE") {
    fields.fail("has type " + type->dump() + ", which is not supported (BPE is).");
  }
  fields.refuse("dropout");
  fields.refuse("continuing_subword_prefix");
  fields.refuse("end_of_word_suffix");
  Bpe bpe;
  bpe.byte_level_ = byte_level;
  bpe.vocabulary_ = &vocabulary;
  bpe.fuse_unknown_ = fields.flag("fuse_unk", false);
  bpe.ignore_merges_ = fields.flag("ignore_merges", false);
  bpe.read_vocabulary(fields.require("vocab"), source);
  bpe.read_merges(fields.require("merges"), source);
  bpe.read_bytes(fields.flag("byte_fallback", false), source);
  if (fields.find("unk_token") != nullptr) {
    const std::string& unknown = fields.text("unk_token");
    const auto id = vocabulary.find(unknown);
    if (!id) fields.fail("has the unk_token \"" + unknown + "\", which is not in its vocabulary.");
    bpe.unknown_ = *id;
  }
  fields.finish();
  return bpe;
}

void Bpe::read_vocabulary(const Json& vocab, std::string_view source) {
  Fields fields(vocab, "model.vocab", source);
  for (const auto& [spelling, id] : vocab.items()) {
    if (!is_int(id) || id.get<int64_t>() < 0 || id.get<int64_t>() > kMaxTokenId) {
      fields.fail("gives \"" + spelling + "\" the id " + id.dump() + "; ids are whole numbers from 0 to " +
                  std::to_string(kMaxTokenId) + ".");
    }
    if (!vocabulary_->add(spelling, id.get<int32_t>())) {
      fields.fail("gives the id " + id.dump() + " twice, to \"" + spelling + "\" and \"" +
                  std::string(vocabulary_->spelling(id.get<int32_t>())) + "\".");
    }
    if (!byte_level_ || !ignore_merges_) continue;
    if (const auto bytes = bytes_of_spelling(spelling)) words_.emplace(*bytes, id.get<int32_t>());
  }
}

void Bpe::read_merges(const Json& merges, std::string_view source) {
  const Json none = Json::object();
  const Fields fields(none, "model.merges", source);
  if (!merges.is_array()) fields.fail("must be a list.");
  merges_ = MergeTable(merges.size());
  parts_at_marks_ = !byte_level_ && vocabulary_->find(kMark).has_value();
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Pair pair = pair_of(merges[rank], rank, fields);
    joined.assign(pair.left).append(pair.right);
    const auto left = vocabulary_->find(pair.left);
    const auto right = vocabulary_->find(pair.right);
    const auto whole = vocabulary_->find(joined);
    if (!left || !right || !whole) {
      fields.fail("merge " + std::to_string(rank) + " (\"" + std::string(pair.left) + "\", \"" +
                  std::string(pair.right) + "\") uses \"" +
                  std::string(!left    ? pair.left
                              : !right ? pair.right
                                       : std::string_view(joined)) +
                  "\", which is not in the vocabulary.");
    }
    merges_.set(*left, *right, {static_cast<uint32_t>(rank), *whole});
    if (pair.right.starts_with(kMark) && !pair.left.ends_with(kMark)) parts_at_marks_ = false;
  }
}

void Bpe::read_bytes(bool byte_fallback, std::string_view source) {
  const Json none = Json::object();
  const Fields fields(none, "model", source);
  byte_ids_.fill(-1);
  size_t found = 0;
  for (unsigned b = 0; b < 256; ++b) {
    const std::string spelling = byte_level_ ? spelling_of_byte(static_cast<uint8_t>(b)) : fallback_spelling(b);
    const auto id = vocabulary_->find(spelling);
    if (!id) continue;
    byte_ids_[b] = *id;
    ++found;
  }
  // With part of the bytes missing the library mixes fallback and unknown tokens out of order.
  if (byte_fallback && found != 256) {
    fields.fail("sets \"byte_fallback\" but has tokens for " + std::to_string(found) +
                " of 256 bytes, which is not supported.");
  }
  byte_fallback_ = byte_fallback && !byte_level_;
}

}  // namespace headrace::tokenizer
