// Strict reading of one JSON object of a tokenizer.json: what nobody asked for and is set is refused by name, so that
// a setting we do not know cannot be passed over. Used while loading; not shared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"

namespace headrace::tokenizer {

class Fields {
 public:
  // `where` names the object in errors, for example "model" or "pre_tokenizer[1] ByteLevel". Throws DataError when
  // `value` is not an object. Keeps references to both: they must outlive it.
  Fields(const Json& value, std::string where, std::string_view source);

  // The member, or null when it is absent or null.
  const Json* find(std::string_view name);
  // The member, which must be there.
  const Json& require(std::string_view name);
  bool flag(std::string_view name, bool otherwise);
  // A string member; `require`d.
  const std::string& text(std::string_view name);
  // A string member that must be one code point.
  const std::string& character(std::string_view name);
  // An integer member in [low, high].
  int64_t integer(std::string_view name, int64_t low, int64_t high);
  // The member may be absent, null, false, or an empty string, list or object; anything else is refused as unsupported.
  void refuse(std::string_view name);
  // The member has no say in ids, offsets or decoding.
  void ignore(std::string_view name);
  // Throws DataError naming the first member that nothing above asked for and that is set (not null or false).
  void finish() const;

  // "<source>: <where>": the front of an error message.
  std::string place() const;
  const std::string& where() const { return where_; }
  std::string_view source() const { return source_; }
  [[noreturn]] void fail(const std::string& fact) const;

 private:
  const Json& value_;
  std::string where_;
  std::string_view source_;
  std::vector<std::string> asked_;
};

}  // namespace headrace::tokenizer
