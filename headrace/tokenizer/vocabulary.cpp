#include "headrace/tokenizer/vocabulary.h"

namespace headrace::tokenizer {

bool Vocabulary::add(std::string_view spelling, int32_t id) {
  if (has(id)) return false;
  const auto [place, is_new] = by_spelling_.emplace(spelling, id);
  if (!is_new) return false;
  if (static_cast<size_t>(id) >= by_id_.size()) by_id_.resize(static_cast<size_t>(id) + 1, nullptr);
  by_id_[static_cast<size_t>(id)] = &place->first;
  return true;
}

std::optional<int32_t> Vocabulary::find(std::string_view spelling) const {
  const auto found = by_spelling_.find(spelling);
  if (found == by_spelling_.end()) return std::nullopt;
  return found->second;
}

bool Vocabulary::has(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < by_id_.size() && by_id_[static_cast<size_t>(id)] != nullptr;
}

std::string_view Vocabulary::spelling(int32_t id) const {
  return has(id) ? std::string_view(*by_id_[static_cast<size_t>(id)]) : std::string_view();
}

}  // namespace headrace::tokenizer
