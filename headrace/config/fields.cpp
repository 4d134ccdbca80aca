#include "headrace/config/fields.h"

#include <algorithm>
#include <numeric>

#include "headrace/base/errors.h"

namespace headrace::config {
namespace {

[[noreturn]] void refuse_type(const FieldInfo& info, const Json& value, std::string_view expected) {
  throw ConfigError("config.read", "'" + std::string(info.key) + "' is " + value.dump() + ", expected " +
                                       std::string(expected) + ": " + std::string(info.help) + ".");
}

// Levenshtein distance, for "did you mean".
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

void read_field(const FieldInfo& info, const Json& value, std::string& member) {
  if (!value.is_string()) refuse_type(info, value, "a string");
  check_choice(info, value.get_ref<const std::string&>());
  member = value.get<std::string>();
}

void read_field(const FieldInfo& info, const Json& value, int64_t& member) {
  if (!is_int(value)) refuse_type(info, value, "a whole number");
  member = value.get<int64_t>();
}

void read_field(const FieldInfo& info, const Json& value, double& member) {
  if (!value.is_number()) refuse_type(info, value, "a number");
  member = value.get<double>();
}

void read_field(const FieldInfo& info, const Json& value, bool& member) {
  if (!value.is_boolean()) refuse_type(info, value, "true or false");
  member = value.get<bool>();
}

void read_field(const FieldInfo& info, const Json& value, std::vector<std::string>& member) {
  const bool all_strings =
      value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_string(); });
  if (value.is_string()) {
    member = {value.get<std::string>()};
  } else if (all_strings) {
    member = value.get<std::vector<std::string>>();
  } else {
    refuse_type(info, value, "a string or a list of strings");
  }
}

void check_choice(const FieldInfo& info, std::string_view value) {
  if (info.choices.empty() || std::find(info.choices.begin(), info.choices.end(), value) != info.choices.end()) return;
  std::string allowed;
  for (std::string_view choice : info.choices) allowed += (allowed.empty() ? "" : ", ") + std::string(choice);
  throw ConfigError("config.read", "'" + std::string(info.key) + "' is '" + std::string(value) +
                                       "', expected one of: " + allowed + ".");
}

void refuse_unknown_key(std::string_view key, const std::vector<std::string>& known, std::string_view source) {
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edit_distance(key, a) < edit_distance(key, b);
  });
  std::string hint;
  if (nearest != known.end() && edit_distance(key, *nearest) <= 1 + key.size() / 3) {
    hint = " Did you mean '" + *nearest + "'?";
  }
  throw ConfigError("config.read", std::string(source) + ": unknown key '" + std::string(key) + "'." + hint);
}

}  // namespace headrace::config
