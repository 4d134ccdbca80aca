// The regular expressions by which the common families cut text into words, as hand-written scanners: several times
// faster than a regex engine, and free of its limits. Any other pattern goes through PCRE2 (regex.h); a property test
// holds the two against each other. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace headrace::tokenizer {

enum class WordPattern {
  kGpt2,    // what ByteLevel's use_regex means
  kLlama3,  // numbers in groups of up to three digits
  kQwen2,   // every digit alone
};

// The scanner of exactly this regular expression; none when there is no scanner for it.
std::optional<WordPattern> word_pattern_of(std::string_view regex);
std::string_view regex_of(WordPattern pattern);

// End of the word that begins at `begin` < text.size(); `text` is valid UTF-8. These patterns cover every character,
// so the words found one after another are the whole text.
size_t word_end(WordPattern pattern, std::string_view text, size_t begin);

}  // namespace headrace::tokenizer
