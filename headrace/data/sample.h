// One training document as tokens: what masking makes of one record of a file. Plain data; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::data {

struct Sample {
  std::vector<int32_t> ids;
  // One flag a token: 1 when this token is a target to learn, so that the prediction made one token earlier counts.
  // trained[0] is always 0: nothing predicts the first token.
  std::vector<uint8_t> trained;
  int32_t file = 0;         // index into Corpus::files()
  int64_t line = 0;         // 1-based line of the record; for a .bin the 0-based index of its first token
  uint64_t group = 0;       // hash of the group key: equal ones stay on one side of the split; 0: a group of its own
  bool is_text = false;     // pretraining text: may be cut anywhere without losing a target
  bool whole_file = false;  // the document is a whole file: held-out text is its tail
};

}  // namespace headrace::data
