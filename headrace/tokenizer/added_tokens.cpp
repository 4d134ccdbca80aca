#include "headrace/tokenizer/added_tokens.h"

#include <algorithm>

#include "headrace/tokenizer/char_class.h"
#include "headrace/tokenizer/fields.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

bool has_class(std::string_view text, size_t at, uint8_t wanted) {
  return (char_classes().of(code_point_at(text.data() + at).value) & wanted) != 0;
}

bool word_before(std::string_view text, size_t at) {
  return at > 0 && has_class(text, previous_start(text, at), kWord);
}
bool word_after(std::string_view text, size_t at) { return at < text.size() && has_class(text, at, kWord); }

size_t spaces_before(std::string_view text, size_t at) {
  while (at > 0) {
    const size_t before = previous_start(text, at);
    if (!has_class(text, before, kSpace)) break;
    at = before;
  }
  return at;
}
size_t spaces_after(std::string_view text, size_t at) {
  while (at < text.size() && has_class(text, at, kSpace)) at += sequence_length(text[at]);
  return at;
}

}  // namespace

TokenTrie::TokenTrie() : nodes_(1) {}

bool TokenTrie::insert(std::string_view text, int32_t value) {
  begins_[static_cast<uint8_t>(text[0])] = true;
  uint32_t at = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    auto& next = nodes_[at].next;
    const auto found = std::find_if(next.begin(), next.end(), [&](const auto& edge) { return edge.first == byte; });
    if (found != next.end()) {
      at = found->second;
    } else {
      const auto fresh = static_cast<uint32_t>(nodes_.size());
      next.emplace_back(byte, fresh);
      nodes_.emplace_back();
      at = fresh;
    }
  }
  if (nodes_[at].value >= 0) return false;
  nodes_[at].value = value;
  return true;
}

TokenTrie::Match TokenTrie::longest(std::string_view text) const {
  Match best{-1, 0};
  uint32_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto& next = nodes_[at].next;
    const auto byte = static_cast<uint8_t>(text[i]);
    const auto found = std::find_if(next.begin(), next.end(), [&](const auto& edge) { return edge.first == byte; });
    if (found == next.end()) break;
    at = found->second;
    if (nodes_[at].value >= 0) best = {nodes_[at].value, i + 1};
  }
  return best;
}

AddedTokens AddedTokens::from_json(const Json* value, Vocabulary& vocabulary, const Normalizer& normalizer,
                                   std::string_view source) {
  AddedTokens added;
  if (value == nullptr) return added;
  const Json none = Json::object();
  if (!value->is_array()) Fields(none, "added_tokens", source).fail("must be a list.");
  added.next_id_ = static_cast<int64_t>(vocabulary.count());
  for (size_t i = 0; i < value->size(); ++i) {
    Fields fields((*value)[i], "added_tokens[" + std::to_string(i) + "]", source);
    added.add(fields, vocabulary, normalizer);
  }
  return added;
}

// The library ignores the file's ids: a token that the model has keeps the model's id, others are numbered on.
void AddedTokens::check_id(const Fields& fields, std::string_view content, int32_t id, int64_t next_id,
                           Vocabulary& vocabulary) {
  const auto known = vocabulary.find(content);
  const int64_t expected = known ? *known : next_id;
  if (expected != id || (!known && !vocabulary.add(content, id))) {
    fields.fail("(\"" + std::string(content) + "\") has the id " + std::to_string(id) +
                ", where the vocabulary leads to " + std::to_string(expected) + ".");
  }
}

void AddedTokens::add(Fields& fields, Vocabulary& vocabulary, const Normalizer& normalizer) {
  const std::string& content = fields.text("content");
  if (content.empty() || content.size() > kMaxBytes) {
    fields.fail("has " + std::to_string(content.size()) + " bytes; from 1 to " + std::to_string(kMaxBytes) +
                " are allowed.");
  }
  const auto id = static_cast<int32_t>(fields.integer("id", 0, kMaxTokenId));
  const bool is_new = !vocabulary.find(content).has_value();
  check_id(fields, content, id, next_id_, vocabulary);
  if (is_new) ++next_id_;
  Token token{id,
              fields.flag("single_word", false),
              fields.flag("lstrip", false),
              fields.flag("rstrip", false),
              fields.flag("special", false),
              content};
  const bool is_normalized = fields.flag("normalized", !token.special);
  fields.finish();
  if (is_normalized) {
    Normalizer::Memory memory;
    token.spelling = std::string(normalizer.apply(Piece{content}, memory, false).text);
  }
  if (token.spelling.empty() ||
      !(is_normalized ? normalized_ : plain_).insert(token.spelling, static_cast<int32_t>(tokens_.size()))) {
    fields.fail("(\"" + content + "\") is spelt like an earlier one.");
  }
  if (static_cast<size_t>(id) >= index_of_id_.size()) index_of_id_.resize(static_cast<size_t>(id) + 1, -1);
  index_of_id_[static_cast<size_t>(id)] = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(std::move(token));
}

void AddedTokens::cut(std::string_view text, bool normalized, std::vector<Cut>& cuts) const {
  cuts.clear();
  const TokenTrie& trie = normalized ? normalized_ : plain_;
  size_t done = 0;  // everything before is in `cuts`
  for (size_t at = 0; !trie.empty() && at < text.size();) {
    if (!trie.may_begin(text[at])) {
      ++at;
      continue;
    }
    const TokenTrie::Match match = trie.longest(text.substr(at));
    if (match.value < 0) {
      ++at;
      continue;
    }
    const Token& token = tokens_[static_cast<size_t>(match.value)];
    size_t begin = at;
    size_t end = at + match.bytes;
    at = end;
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    if (token.lstrip) begin = std::max(spaces_before(text, begin), done);
    if (token.rstrip) end = spaces_after(text, end);
    if (done < begin) cuts.push_back({done, begin, -1});
    // An earlier token's rstrip may have taken the spaces in which this one begins.
    cuts.push_back({std::min(begin, end), end, token.id});
    done = end;
  }
  if (done < text.size()) cuts.push_back({done, text.size(), -1});
}

const AddedTokens::Token* AddedTokens::find(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= index_of_id_.size()) return nullptr;
  const int32_t index = index_of_id_[static_cast<size_t>(id)];
  return index < 0 ? nullptr : &tokens_[static_cast<size_t>(index)];
}

bool AddedTokens::is_special(int32_t id) const {
  const Token* token = find(id);
  return token != nullptr && token->special;
}

std::string_view AddedTokens::decoded_spelling(int32_t id) const {
  const Token* token = find(id);
  return token == nullptr ? std::string_view() : std::string_view(token->spelling);
}

}  // namespace headrace::tokenizer
