// Channels of a weight matrix, the unit of ZenFlow (arXiv 2505.12242): scored by the energy of their gradient, gathered
// into compact buffers, and put back. A channel (the paper's column, an input channel) is a storage column in most
// models and a storage row in GPT-2, which stores [in, out]. A list of channels is in any order, without repetition; a
// position is an index within it. Compact, the n channels of a list are [rows, n] where channels are columns, [n,
// width] where they are rows; a line is one compact row. Pure functions of their spans; safe from any thread on
// disjoint lines. No result depends on how the lines are cut into calls or on the instruction set. Each call over
// columns first looks at its whole list, about the work of two rows: give it many rows. All throw InternalError when
// lengths or shapes disagree or a channel is outside of the matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::kernel {

enum class Axis { kColumns, kRows };

// A row-major fp32 matrix [rows, width].
struct MatrixShape {
  int64_t rows = 0, width = 0;
  Axis axis = Axis::kColumns;  // what of the storage is a channel

  int64_t num_channels() const { return axis == Axis::kColumns ? width : rows; }
  int64_t num_elements() const { return rows * width; }
};

// [begin, end) of compact lines, or of storage rows.
struct Lines {
  int64_t begin = 0, end = 0;

  int64_t count() const { return end - begin; }
};

// The compact form of num_chosen channels.
inline int64_t num_lines(const MatrixShape& shape, size_t num_chosen) {
  return shape.axis == Axis::kColumns ? shape.rows : static_cast<int64_t>(num_chosen);
}
inline int64_t line_width(const MatrixShape& shape, size_t num_chosen) {
  return shape.axis == Axis::kColumns ? static_cast<int64_t>(num_chosen) : shape.width;
}

// The chosen lines of the whole matrix to compact [lines.count(), line_width].
void gather_channels(std::span<const float> matrix, const MatrixShape& shape, std::span<const int32_t> channels,
                     Lines lines, std::span<float> compact);

// The inverse. No other element of the matrix is touched, so others may use them meanwhile.
void scatter_channels(std::span<const float> compact, const MatrixShape& shape, std::span<const int32_t> channels,
                      Lines lines, std::span<float> matrix);

// Adds the squares of the storage rows [rows.begin, rows.end) of the whole matrix to the scores of their channels,
// scores [num_channels], in double: a column's in ascending order of rows, a row's as squared_norm does.
void add_channel_scores(std::span<const float> matrix, const MatrixShape& shape, Lines rows, std::span<double> scores);

// One side of a split: a list of columns and where they go, compact [rows.count(), channels.size()].
struct ColumnSide {
  std::span<const int32_t> channels;
  std::span<float> compact;
};

// Both sides of the same storage rows and the scores [width] while reading the matrix once: bitwise what two calls of
// gather_channels and one of add_channel_scores give. Channels must be columns.
void split_columns(std::span<const float> matrix, const MatrixShape& shape, Lines rows, const ColumnSide& important,
                   const ColumnSide& deferred, std::span<double> scores);

}  // namespace headrace::kernel
