#include "headrace/config/shape_fields.h"

#include <cmath>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::config {
namespace {

constexpr size_t kMaxShown = 80;  // characters of a value in an error: files come from strangers

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

}  // namespace

ShapeFields::ShapeFields(const Json& json, std::string source, std::string prefix)
    : json_(json), source_(std::move(source)), prefix_(std::move(prefix)) {
  if (!json.is_object()) {
    const std::string what = prefix_.empty() ? "the file" : prefix_.substr(0, prefix_.size() - 1);
    throw DataError("config.parse", source_ + ": " + what + " must be a JSON object and is " + shown(json) + ".");
  }
}

const Json* ShapeFields::find(std::string_view key) {
  known_.emplace(key);
  const auto it = json_.find(key);
  return it == json_.end() || it->is_null() ? nullptr : &*it;
}

bool ShapeFields::has(std::string_view key) { return find(key) != nullptr; }

bool ShapeFields::is_null(std::string_view key) {
  known_.emplace(key);
  const auto it = json_.find(key);
  return it != json_.end() && it->is_null();
}

const Json& ShapeFields::value(std::string_view key) {
  const Json* found = find(key);
  if (found == nullptr) throw DataError("config.parse", source_ + ": " + prefix_ + std::string(key) + " is missing.");
  return *found;
}

int64_t ShapeFields::integer(std::string_view key, IntRange range) {
  const Json& found = value(key);
  const bool fits = is_int(found) && found.get<int64_t>() >= range.low && found.get<int64_t>() <= range.high;
  if (!fits) {
    refuse(key, "an integer from " + std::to_string(range.low) + " to " + std::to_string(range.high) + " is accepted");
  }
  return found.get<int64_t>();
}

int64_t ShapeFields::integer(std::string_view key, IntRange range, int64_t fallback) {
  return has(key) ? integer(key, range) : fallback;
}

double ShapeFields::number(std::string_view key, double low, double high) {
  const Json& found = value(key);
  const double number = found.is_number() ? found.get<double>() : std::nan("");
  if (!(number >= low && number <= high)) {
    refuse(key, "a number from " + Json(low).dump() + " to " + Json(high).dump() + " is accepted");
  }
  return number;
}

double ShapeFields::number(std::string_view key, double low, double high, double fallback) {
  return has(key) ? number(key, low, high) : fallback;
}

bool ShapeFields::boolean(std::string_view key, bool fallback) {
  if (!has(key)) return fallback;
  if (!value(key).is_boolean()) refuse(key, "true or false is accepted");
  return value(key).get<bool>();
}

std::string ShapeFields::text(std::string_view key, std::string_view fallback) {
  if (!has(key)) return std::string(fallback);
  if (!value(key).is_string()) refuse(key, "a string is accepted");
  return value(key).get<std::string>();
}

void ShapeFields::require_bool(std::string_view key, bool only, bool fallback) {
  if (boolean(key, fallback) != only) refuse(key, only ? "only true is supported" : "only false is supported");
}

std::vector<std::string> ShapeFields::unknown_keys() const {
  std::vector<std::string> unknown;
  for (const auto& item : json_.items()) {
    if (!known_.contains(item.key())) unknown.push_back(item.key());
  }
  return unknown;
}

void ShapeFields::refuse(std::string_view key, std::string_view accepted) const {
  const auto it = json_.find(key);
  const std::string found = it == json_.end() ? "missing" : shown(*it);
  throw DataError("config.parse",
                  source_ + ": " + prefix_ + std::string(key) + " is " + found + "; " + std::string(accepted) + ".");
}

}  // namespace headrace::config
