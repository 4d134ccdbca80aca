// The regular expressions of Split pre-tokenizers, run by PCRE2 (JIT where the machine has it). tokenizer.json writes
// them for Oniguruma; what the two engines read alike is passed on, \s and \d are spelt out, and everything else is
// refused by name. Known difference: \p{..} follows PCRE2's Unicode version, which may lag that of `tokenizers` for
// recently added characters (the scanners of word_pattern.h do not have it).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace headrace::tokenizer {

// The same expression in PCRE2's syntax. Throws DataError naming the construct that is not supported.
std::string to_pcre2(std::string_view pattern, std::string_view source);

// Memory for one thread's matching; made on first use.
class RegexMemory {
 public:
  RegexMemory();
  RegexMemory(RegexMemory&&) noexcept;
  RegexMemory& operator=(RegexMemory&&) noexcept;
  ~RegexMemory();

 private:
  friend class Regex;
  struct State;
  std::unique_ptr<State> state_;
};

// Compiled once, then const and shared by all threads.
class Regex {
 public:
  // Throws DataError when the expression is wrong, longer than 4096 bytes or not supported.
  static Regex compile(std::string_view pattern, std::string_view source);

  // First match that begins at or after byte `from` of valid UTF-8 `text`, as [begin, end); none: nullopt. What stands
  // before `from` is seen by lookbehind. Throws DataError when the match limit is reached.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from, RegexMemory& memory) const;

  const std::string& pattern() const { return pattern_; }

 private:
  Regex() = default;
  std::shared_ptr<const void> code_;
  std::string pattern_;  // as in the file
};

}  // namespace headrace::tokenizer
