// GPT-2's spelling of bytes as printable characters, in which byte-level vocabularies are written ("Ġ" is a space).
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::tokenizer {

// The character that spells `byte`, as UTF-8.
std::string spelling_of_byte(uint8_t byte);

// The bytes that `spelling` stands for; none when a character of it is not in the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

// The byte of a byte-fallback token "<0x4A>"; none for any other token.
std::optional<uint8_t> fallback_byte(std::string_view token);

}  // namespace headrace::tokenizer
