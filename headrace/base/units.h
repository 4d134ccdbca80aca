// Sizes and times as people write them: "8GiB", "30s". Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

// Bytes from "4096", "512KiB", "8GiB", "1.5GiB", "2GB" (KB, MB, GB, TB are powers of 1000; KiB ... TiB of 1024).
// Throws ConfigError naming the text on anything else, on negatives and on more than 2^63-1.
int64_t parse_bytes(std::string_view text);

// Seconds from "30s", "500ms", "10min", "2h" or a bare number of seconds. Throws ConfigError likewise.
double parse_seconds(std::string_view text);

// "1.5 GiB", "312 MiB", "17 B": three significant digits.
std::string format_bytes(int64_t bytes);

// "1h02m", "3m20s", "12s", "0.25s".
std::string format_seconds(double seconds);

// "1234567" -> "1,234,567".
std::string format_count(int64_t count);

}  // namespace headrace
