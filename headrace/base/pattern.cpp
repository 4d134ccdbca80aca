#include "headrace/base/pattern.h"

#include <algorithm>

namespace headrace {

bool matches(std::string_view name, std::string_view pattern) {
  size_t at = 0, in_pattern = 0, star = std::string_view::npos, retry = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      retry = at;
    } else if (in_pattern < pattern.size() && pattern[in_pattern] == name[at]) {
      ++at;
      ++in_pattern;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;  // let the last star take one character more
      at = ++retry;
    } else {
      return false;
    }
  }
  return pattern.substr(in_pattern).find_first_not_of('*') == std::string_view::npos;
}

bool matches_any(std::string_view name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(name, pattern); });
}

}  // namespace headrace
