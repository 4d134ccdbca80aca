// Reading JSON from strangers: parse with a place and a path in every error. Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headrace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps the order of keys, for files that people read

// Parses `text`; throws DataError "[place] <source>: <what is wrong at which byte>". Nesting over 128 is refused
// (nlohmann's parser is iterative but its destructor and our walks are not). `place` is "room.verb".
Json parse_json(std::string_view text, std::string_view place, std::string_view source);

// True when `value` is an integer without loss and fits int64_t.
bool is_int(const Json& value);

}  // namespace headrace
