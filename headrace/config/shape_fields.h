// Typed, bounded reading of a config.json: every error names the file, the key, its value and what is accepted, and
// every key that was read is remembered so that unknown ones can be told. One owner.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"

namespace headrace::config {

struct IntRange {
  int64_t low, high;  // both included
};

class ShapeFields {
 public:
  // `json` must outlive this object; throws DataError unless it is an object. `prefix` names it in errors
  // ("rope_scaling.").
  ShapeFields(const Json& json, std::string source, std::string prefix = "");

  // Absent and null count alike.
  bool has(std::string_view key);
  bool is_null(std::string_view key);  // present and null
  // The overloads without a fallback throw DataError when the key is absent.
  int64_t integer(std::string_view key, IntRange range);
  int64_t integer(std::string_view key, IntRange range, int64_t fallback);
  double number(std::string_view key, double low, double high, double fallback);
  double number(std::string_view key, double low, double high);
  bool boolean(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);
  const Json& value(std::string_view key);

  // Throws DataError unless the key is absent or equals `only`.
  void require_bool(std::string_view key, bool only, bool fallback);
  // Marks a key as known without reading it.
  void ignore(std::string_view key) { known_.emplace(key); }
  std::vector<std::string> unknown_keys() const;

  // "<source>: <key> is <value>; <accepted>." as a DataError.
  [[noreturn]] void refuse(std::string_view key, std::string_view accepted) const;

 private:
  const Json* find(std::string_view key);

  const Json& json_;
  std::string source_, prefix_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace headrace::config
