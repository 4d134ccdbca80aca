// Names with wildcards, for settings that pick parameters. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// True when the whole of `name` fits `pattern`, in which '*' stands for any characters, also none. Linear in
// name times stars.
bool matches(std::string_view name, std::string_view pattern);

bool matches_any(std::string_view name, const std::vector<std::string>& patterns);

}  // namespace headrace
