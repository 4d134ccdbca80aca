// Where a run stands in its data: enough to go on with exactly the next step in another process. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/base/json.h"

namespace headrace::data {

struct Position {
  int64_t step = 0;      // steps handed out
  int64_t epoch = 0;     // the next step belongs to this epoch
  int64_t sequence = 0;  // and begins at this sequence of it
  // What the order was made from. batch and accumulate may change between runs; these may not.
  std::string fingerprint;  // of the training data (32 hex digits)
  uint64_t seed = 0;
  bool shuffle = true;
  std::string layout;
  int64_t max_length = 0;
  int64_t pack_look_ahead = 0;

  bool operator==(const Position&) const = default;
  Json to_json() const;
  // Throws DataError naming the key that is missing or wrong.
  static Position from_json(const Json& json);
};

}  // namespace headrace::data
