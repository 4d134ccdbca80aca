// How chosen columns of a row-major matrix are copied to and from their compact form: lists keep long runs of
// neighbours (deferred columns are all but a few), so a row is copied in pieces of a few elements, the same for every
// row. Internal to channels.h and adamw_channels.h, which check what comes in. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::kernel {

// `size` neighbours, known from the list that holds the piece: where they begin in the matrix's row and in the line.
struct ColumnPiece {
  int32_t column, position;
};

// Pieces may overlap; together they cover the list and nothing else.
struct ColumnPieces {
  std::vector<ColumnPiece> of_8, of_4, of_2, of_1;
  size_t count = 0;  // columns in the list, the width of a line
};

// `columns` in any order; each must lie within the matrix.
ColumnPieces column_pieces(std::span<const int32_t> columns);

// The first of some rows of a matrix, `width` elements apart.
template <class Float>
struct MatrixRows {
  Float* first = nullptr;
  size_t count = 0, width = 0;
};

// compact [rows.count, pieces.count].
void gather_rows(const ColumnPieces& pieces, const MatrixRows<const float>& rows, float* compact);
void scatter_rows(const ColumnPieces& pieces, const float* compact, const MatrixRows<float>& rows);

}  // namespace headrace::kernel
