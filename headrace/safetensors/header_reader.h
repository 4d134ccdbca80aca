// The JSON of a header, event by event: no document tree is built, so a hostile header of 100 MB costs no gigabytes.
// For header.cpp. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "headrace/safetensors/header.h"

namespace headrace::safetensors {

// Tensors in the order of the text, offsets relative to the data, nothing checked but form: names may repeat and
// offsets may be nonsense (each is >= 0). Throws DataError (place "safetensors.open").
Header read_header_json(std::string_view json, std::string_view source);

// A name from a stranger's file for a message: in quotes, control characters replaced, cut after 120 bytes.
std::string in_quotes(std::string_view name);

}  // namespace headrace::safetensors
