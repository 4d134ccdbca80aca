#include "headrace/tensor/dtype.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace::tensor {
namespace {

TEST(Dtype, EveryTypeHasTheWidthThatTheFormatGivesIt) {
  int num_mapped = 0;
  for (int i = 0; i <= static_cast<int>(safetensors::DType::kU64); ++i) {
    const auto dtype = static_cast<safetensors::DType>(i);
    const std::optional<at::ScalarType> type = scalar_type_of(dtype);
    if (!type) continue;
    ++num_mapped;
    EXPECT_EQ(static_cast<int64_t>(c10::elementSize(*type)) * 8, safetensors::bits_of(dtype))
        << safetensors::name_of(dtype);
    EXPECT_EQ(dtype_of(*type), dtype) << "there and back";
  }
  EXPECT_EQ(num_mapped, 19);
}

TEST(Dtype, WhatOneSideLacksIsRefused) {
  EXPECT_FALSE(scalar_type_of(safetensors::DType::kF4));
  EXPECT_THROW(dtype_of(at::kComplexDouble), InternalError);
}

}  // namespace
}  // namespace headrace::tensor
