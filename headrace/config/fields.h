// How a struct of settings meets the outside: each struct lists its fields once, and JSON files, the command line and
// the resolved config of a run folder are all made from that list. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"

namespace headrace::config {

// What a field says about itself. The flag is the key with '-' for '_': "max_length" is --max-length.
struct FieldInfo {
  std::string_view key;
  std::string_view help;                       // one line, with the unit
  std::vector<std::string_view> choices = {};  // for words: what is allowed; empty for anything
};

// A settings struct derives from nothing; it offers
//   template <class Visitor> void visit_fields(Visitor&& visit)   calling visit(FieldInfo, member&) for each field,
// where a member is std::string, int64_t, double, bool or std::vector<std::string>.

// Reads `value` from JSON into the member. Throws ConfigError naming key, what was given and what is expected.
void read_field(const FieldInfo& info, const Json& value, std::string& member);
void read_field(const FieldInfo& info, const Json& value, int64_t& member);
void read_field(const FieldInfo& info, const Json& value, double& member);
void read_field(const FieldInfo& info, const Json& value, bool& member);
void read_field(const FieldInfo& info, const Json& value, std::vector<std::string>& member);

// Throws ConfigError when `value` is not one of the choices.
void check_choice(const FieldInfo& info, std::string_view value);

// Throws ConfigError naming the unknown key and the known one nearest to it.
[[noreturn]] void refuse_unknown_key(std::string_view key, const std::vector<std::string>& known,
                                     std::string_view source);

// Every field of `settings` as one JSON object, in the order of the list.
template <class Settings>
OrderedJson to_json(Settings settings) {
  OrderedJson object = OrderedJson::object();
  settings.visit_fields([&](const FieldInfo& info, auto& member) { object[std::string(info.key)] = member; });
  return object;
}

// Overwrites the fields named in `object`; the others keep their values. Throws ConfigError on an unknown key, a wrong
// type or a word that is not among the choices. `source` names the file in messages.
template <class Settings>
void apply_json(const Json& object, std::string_view source, Settings& settings) {
  std::vector<std::string> known;
  settings.visit_fields([&](const FieldInfo& info, auto& member) {
    known.emplace_back(info.key);
    if (const auto found = object.find(std::string(info.key)); found != object.end()) read_field(info, *found, member);
  });
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) refuse_unknown_key(key, known, source);
  }
}

}  // namespace headrace::config
