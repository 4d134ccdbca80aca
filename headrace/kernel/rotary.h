// Rotary position embedding of heads, in place. Half-split convention: channel r pairs with r + R. Pure; any thread on
// disjoint rows; each element is computed alone.
#pragma once

#include <cstddef>
#include <span>

namespace headrace::kernel {

// Rows of num_heads heads of 2R channels; row n starts at data + n * row_stride.
struct HeadRows {
  float* data;
  size_t rows;
  size_t row_stride;  // [elements]
  size_t num_heads;
};

// (a, b) becomes (a cos - b sin, b cos + a sin); backward: (a cos + b sin, b cos - a sin).
// cos_NR, sin_NR: one row of R a row of heads. Throws InternalError when they hold another number of elements.
void rotate(const HeadRows& heads, size_t half, std::span<const float> cos_NR, std::span<const float> sin_NR,
            bool backward);

}  // namespace headrace::kernel
