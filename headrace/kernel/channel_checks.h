// What the kernels over channels ask of their arguments. All throw InternalError at `verb` with both numbers.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/kernel/channels.h"

namespace headrace::kernel {

// `what` holds as many numbers as it must.
void expect_length(const char* verb, const char* what, size_t have, size_t need);

// No side is negative.
void expect_shape(const char* verb, const MatrixShape& shape);

// And a matrix of that shape has as many elements.
void expect_matrix(const char* verb, size_t elements, const MatrixShape& shape);

// `lines` lie within [0, count).
void expect_within(const char* verb, Lines lines, int64_t count);

void expect_channels(const char* verb, std::span<const int32_t> channels, const MatrixShape& shape);

// The elements that the chosen lines of num_chosen channels have in compact form; the lines lie within them.
size_t compact_length(const char* verb, const MatrixShape& shape, Lines lines, size_t num_chosen);

}  // namespace headrace::kernel
