#include "headrace/tensor/dtype.h"

#include <string>

#include "headrace/base/errors.h"

namespace headrace::tensor {
namespace {

using safetensors::DType;

struct Pair {
  DType dtype;
  at::ScalarType type;
};
constexpr Pair kPairs[] = {{DType::kBool, at::kBool},
                           {DType::kU8, at::kByte},
                           {DType::kI8, at::kChar},
                           {DType::kF8E5M2, at::kFloat8_e5m2},
                           {DType::kF8E4M3, at::kFloat8_e4m3fn},
                           {DType::kF8E5M2Fnuz, at::kFloat8_e5m2fnuz},
                           {DType::kF8E4M3Fnuz, at::kFloat8_e4m3fnuz},
                           {DType::kF8E8M0, at::kFloat8_e8m0fnu},
                           {DType::kI16, at::kShort},
                           {DType::kU16, at::kUInt16},
                           {DType::kF16, at::kHalf},
                           {DType::kBF16, at::kBFloat16},
                           {DType::kI32, at::kInt},
                           {DType::kU32, at::kUInt32},
                           {DType::kF32, at::kFloat},
                           {DType::kC64, at::kComplexFloat},
                           {DType::kF64, at::kDouble},
                           {DType::kI64, at::kLong},
                           {DType::kU64, at::kUInt64}};

}  // namespace

std::optional<at::ScalarType> scalar_type_of(safetensors::DType dtype) {
  for (const Pair& pair : kPairs) {
    if (pair.dtype == dtype) return pair.type;
  }
  return std::nullopt;
}

safetensors::DType dtype_of(at::ScalarType type) {
  for (const Pair& pair : kPairs) {
    if (pair.type == type) return pair.dtype;
  }
  throw InternalError("tensor.dtype", std::string("safetensors has no type for ") + c10::toString(type) + ".");
}

}  // namespace headrace::tensor
