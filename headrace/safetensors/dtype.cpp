#include "headrace/safetensors/dtype.h"

#include <array>

namespace headrace::safetensors {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int64_t bits;
};

constexpr std::array<Row, 22> kTable{{{DType::kBool, "BOOL", 8},
                                      {DType::kF4, "F4", 4},
                                      {DType::kF6E2M3, "F6_E2M3", 6},
                                      {DType::kF6E3M2, "F6_E3M2", 6},
                                      {DType::kU8, "U8", 8},
                                      {DType::kI8, "I8", 8},
                                      {DType::kF8E5M2, "F8_E5M2", 8},
                                      {DType::kF8E4M3, "F8_E4M3", 8},
                                      {DType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
                                      {DType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
                                      {DType::kF8E8M0, "F8_E8M0", 8},
                                      {DType::kI16, "I16", 16},
                                      {DType::kU16, "U16", 16},
                                      {DType::kF16, "F16", 16},
                                      {DType::kBF16, "BF16", 16},
                                      {DType::kI32, "I32", 32},
                                      {DType::kU32, "U32", 32},
                                      {DType::kF32, "F32", 32},
                                      {DType::kC64, "C64", 64},
                                      {DType::kF64, "F64", 64},
                                      {DType::kI64, "I64", 64},
                                      {DType::kU64, "U64", 64}}};

constexpr bool is_in_enum_order() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].dtype != static_cast<DType>(i)) return false;
  }
  return kTable.size() == static_cast<size_t>(DType::kU64) + 1;
}
static_assert(is_in_enum_order());

const Row& row_of(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

}  // namespace

int64_t bits_of(DType dtype) { return row_of(dtype).bits; }

std::string_view name_of(DType dtype) { return row_of(dtype).name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (const Row& row : kTable) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace headrace::safetensors
