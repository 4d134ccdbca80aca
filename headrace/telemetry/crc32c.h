// The CRC of TFRecord frames: Castagnoli polynomial, reflected (RFC 3720, appendix B.4). Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace headrace::telemetry {

uint32_t crc32c(std::string_view bytes);

// Rotated by 15 bits plus a constant, as TFRecord stores it.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace headrace::telemetry
