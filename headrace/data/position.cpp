#include "headrace/data/position.h"

#include "headrace/base/errors.h"

namespace headrace::data {
namespace {

constexpr std::string_view kPlace = "data.position";

const Json& find(const Json& json, const char* key) {
  const auto value = json.find(key);
  if (value == json.end()) throw DataError(kPlace, "the saved position lacks '" + std::string(key) + "'.");
  return *value;
}

int64_t read_count(const Json& json, const char* key) {
  const Json& value = find(json, key);
  if (!is_int(value) || value.get<int64_t>() < 0) {
    throw DataError(kPlace, "'" + std::string(key) + "' of the saved position is " + value.dump() + ", not a count.");
  }
  return value.get<int64_t>();
}

std::string read_word(const Json& json, const char* key) {
  const Json& value = find(json, key);
  if (!value.is_string()) throw DataError(kPlace, "'" + std::string(key) + "' of the saved position is no text.");
  return value.get<std::string>();
}

}  // namespace

Json Position::to_json() const {
  return {{"step", step},
          {"epoch", epoch},
          {"sequence", sequence},
          {"fingerprint", fingerprint},
          {"seed", seed},
          {"shuffle", shuffle},
          {"layout", layout},
          {"max_length", max_length},
          {"pack_look_ahead", pack_look_ahead}};
}

Position Position::from_json(const Json& json) {
  if (!json.is_object()) throw DataError(kPlace, "the saved position is no JSON object.");
  Position position;
  position.step = read_count(json, "step");
  position.epoch = read_count(json, "epoch");
  position.sequence = read_count(json, "sequence");
  position.fingerprint = read_word(json, "fingerprint");
  const Json& seed = find(json, "seed");
  if (!seed.is_number_unsigned()) throw DataError(kPlace, "'seed' of the saved position is " + seed.dump() + ".");
  position.seed = seed.get<uint64_t>();
  const Json& shuffle = find(json, "shuffle");
  if (!shuffle.is_boolean()) throw DataError(kPlace, "'shuffle' of the saved position is " + shuffle.dump() + ".");
  position.shuffle = shuffle.get<bool>();
  position.layout = read_word(json, "layout");
  position.max_length = read_count(json, "max_length");
  position.pack_look_ahead = read_count(json, "pack_look_ahead");
  return position;
}

}  // namespace headrace::data
