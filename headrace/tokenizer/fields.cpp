#include "headrace/tokenizer/fields.h"

#include <algorithm>

#include "headrace/base/errors.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {

Fields::Fields(const Json& value, std::string where, std::string_view source)
    : value_(value), where_(std::move(where)), source_(source) {
  if (!value_.is_object()) fail(std::string("must be an object, is ") + value_.type_name() + ".");
}

std::string Fields::place() const { return std::string(source_) + ": " + where_; }

void Fields::fail(const std::string& fact) const { throw DataError("tokenizer.load", place() + " " + fact); }

const Json* Fields::find(std::string_view name) {
  asked_.emplace_back(name);
  const auto found = value_.find(name);
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::require(std::string_view name) {
  const Json* found = find(name);
  if (found == nullptr) fail("has no \"" + std::string(name) + "\".");
  return *found;
}

bool Fields::flag(std::string_view name, bool otherwise) {
  const Json* found = find(name);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) fail("\"" + std::string(name) + "\" must be true or false.");
  return found->get<bool>();
}

const std::string& Fields::text(std::string_view name) {
  const Json& found = require(name);
  if (!found.is_string()) fail("\"" + std::string(name) + "\" must be a string.");
  return found.get_ref<const std::string&>();
}

const std::string& Fields::character(std::string_view name) {
  const std::string& found = text(name);
  if (found.empty() || sequence_length(found[0]) != found.size()) {
    fail("\"" + std::string(name) + "\" must be one character.");
  }
  return found;
}

int64_t Fields::integer(std::string_view name, int64_t low, int64_t high) {
  const Json& found = require(name);
  const int64_t number = is_int(found) ? found.get<int64_t>() : low - 1;
  if (!is_int(found) || number < low || number > high) {
    fail("\"" + std::string(name) + "\" must be a whole number from " + std::to_string(low) + " to " +
         std::to_string(high) + ".");
  }
  return number;
}

void Fields::refuse(std::string_view name) {
  const Json* found = find(name);
  if (found == nullptr || (found->is_boolean() && !found->get<bool>())) return;
  if (!found->is_primitive() && found->empty()) return;
  if (found->is_string() && found->get_ref<const std::string&>().empty()) return;
  fail("sets \"" + std::string(name) + "\", which is not supported.");
}

void Fields::ignore(std::string_view name) { asked_.emplace_back(name); }

void Fields::finish() const {
  for (const auto& [name, member] : value_.items()) {
    if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    if (member.is_null() || (member.is_boolean() && !member.get<bool>())) continue;
    fail("sets \"" + name + "\", which is not supported.");
  }
}

}  // namespace headrace::tokenizer
