// The time of day as people and other programs read it. Any thread.
#pragma once

#include <string>

namespace headrace::store {

// "2025-01-31T17:03:59Z"
std::string utc_now();

}  // namespace headrace::store
