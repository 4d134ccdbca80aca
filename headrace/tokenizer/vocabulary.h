// Tokens by spelling and by id. Filled while loading, then const and shared by all threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headrace::tokenizer {

// Ids above this would make tables of a size that no model's vocabulary has.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 22) - 1;

class Vocabulary {
 public:
  // False when the spelling or the id is taken. `id` in [0, kMaxTokenId].
  bool add(std::string_view spelling, int32_t id);
  std::optional<int32_t> find(std::string_view spelling) const;
  // Empty for an id without a token.
  std::string_view spelling(int32_t id) const;
  bool has(int32_t id) const;
  // Largest id + 1.
  int64_t size() const { return static_cast<int64_t>(by_id_.size()); }
  // Number of tokens.
  size_t count() const { return by_spelling_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> by_spelling_;
  std::vector<const std::string*> by_id_;  // keys of by_spelling_, which stay where they are
};

}  // namespace headrace::tokenizer
