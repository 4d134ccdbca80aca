#include "headrace/base/json.h"

#include <limits>

#include "headrace/base/errors.h"

namespace headrace {
namespace {

constexpr int kMaxDepth = 128;

}  // namespace

Json parse_json(std::string_view text, std::string_view place, std::string_view source) {
  // nlohmann's lexer takes a zero byte for the end and would accept anything after it.
  if (text.find('\0') != std::string_view::npos) throw DataError(place, std::string(source) + ": holds a zero byte.");
  bool too_deep = false;
  const auto guard = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) too_deep = true;
    return !too_deep;
  };
  try {
    Json value = Json::parse(text.begin(), text.end(), guard);
    if (!too_deep) return value;
  } catch (const Json::exception& error) {
    throw DataError(place, std::string(source) + ": not valid JSON: " + error.what() + ".");
  }
  throw DataError(place, std::string(source) + ": nested deeper than " + std::to_string(kMaxDepth) + " levels.");
}

bool is_int(const Json& value) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }
  return value.is_number_integer();
}

}  // namespace headrace
