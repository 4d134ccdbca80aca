// Element types of safetensors and of libtorch, one to one where both have them. Pure; any thread.
#pragma once

#include <torch/types.h>

#include <optional>

#include "headrace/safetensors/dtype.h"

namespace headrace::tensor {

// Empty when libtorch has no such type (packed 4 and 6 bit floats).
std::optional<at::ScalarType> scalar_type_of(safetensors::DType dtype);

// Throws InternalError for a type that the format lacks.
safetensors::DType dtype_of(at::ScalarType type);

}  // namespace headrace::tensor
