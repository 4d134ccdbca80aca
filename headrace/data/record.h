// One record of a JSON-lines file in any of its forms. Pure; any thread.
// Errors are DataError about the record alone; whoever knows file and line adds them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/data/codec.h"
#include "headrace/data/corpus.h"

namespace headrace::data {

struct Record {
  Format format = Format::text;
  std::vector<Message> messages;   // chat; of instruction and prompt_completion: [system,] user, assistant
  std::string prompt, completion;  // instruction (in its plain form) and prompt_completion
  std::string text;                // text
  uint64_t group = 0;              // hash of the group field's value; 0 without one
};

// Parses one line. Throws when it is not one JSON object, nested too deep, or not UTF-8.
Json parse_record(std::string_view line);

// The form of a record by its keys. Throws naming the keys found and those looked for.
Format detect_format(const Json& record);

// Reads a record of a known form. Throws naming the key and what is wrong with it, also when the record has another
// form than `format`, and when `group_field` is not empty and the record lacks it.
Record read_record(const Json& record, Format format, const std::string& group_field);

}  // namespace headrace::data
