// The element types of the safetensors format, under the names it gives them. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace::safetensors {

enum class DType {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E5M2Fnuz,
  kF8E4M3Fnuz,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

// Bits of one element: 4 and 6 bit types are packed, so a tensor's size in bytes is bits * elements / 8.
int64_t bits_of(DType dtype);

// "F32", "BF16", ...
std::string_view name_of(DType dtype);

// Empty when the format has no such name (names are upper case).
std::optional<DType> dtype_named(std::string_view name);

}  // namespace headrace::safetensors
