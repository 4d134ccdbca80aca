#include "headrace/kernel/column_pieces.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/column_pieces.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <size_t kSize>
HWY_INLINE void copy(const float* HWY_RESTRICT from, float* HWY_RESTRICT to) {
  const hn::CappedTag<float, kSize> d;
  for (size_t i = 0; i < kSize; i += hn::Lanes(d)) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
}

template <size_t kSize>
HWY_INLINE void gather(const std::vector<ColumnPiece>& pieces, const float* HWY_RESTRICT row,
                       float* HWY_RESTRICT line) {
  for (const ColumnPiece& piece : pieces) copy<kSize>(row + piece.column, line + piece.position);
}

template <size_t kSize>
HWY_INLINE void scatter(const std::vector<ColumnPiece>& pieces, const float* HWY_RESTRICT line,
                        float* HWY_RESTRICT row) {
  for (const ColumnPiece& piece : pieces) copy<kSize>(line + piece.position, row + piece.column);
}

void gather_all(const ColumnPieces& pieces, const MatrixRows<const float>& rows, float* compact) {
  for (size_t i = 0; i < rows.count; ++i) {
    const float* row = rows.first + i * rows.width;
    float* line = compact + i * pieces.count;
    gather<8>(pieces.of_8, row, line);
    gather<4>(pieces.of_4, row, line);
    gather<2>(pieces.of_2, row, line);
    gather<1>(pieces.of_1, row, line);
  }
}

void scatter_all(const ColumnPieces& pieces, const float* compact, const MatrixRows<float>& rows) {
  for (size_t i = 0; i < rows.count; ++i) {
    const float* line = compact + i * pieces.count;
    float* row = rows.first + i * rows.width;
    scatter<8>(pieces.of_8, line, row);
    scatter<4>(pieces.of_4, line, row);
    scatter<2>(pieces.of_2, line, row);
    scatter<1>(pieces.of_1, line, row);
  }
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(gather_all);
HWY_EXPORT(scatter_all);

// As many pieces of one size as fit into the run; the last one moved back to end where the run ends. `length` >= size.
void add_run(std::vector<ColumnPiece>& pieces, ColumnPiece begin, int32_t length, int32_t size) {
  for (int32_t at = 0; at < length; at += size) {
    const int32_t from = at + size <= length ? at : length - size;
    pieces.push_back({begin.column + from, begin.position + from});
  }
}

}  // namespace

ColumnPieces column_pieces(std::span<const int32_t> columns) {
  ColumnPieces pieces;
  pieces.count = columns.size();
  for (size_t begin = 0, end = 0; begin < columns.size(); begin = end) {
    for (end = begin + 1; end < columns.size() && columns[end] == columns[end - 1] + 1;) ++end;
    const ColumnPiece first{columns[begin], static_cast<int32_t>(begin)};
    const auto length = static_cast<int32_t>(end - begin);
    if (length >= 8) {
      add_run(pieces.of_8, first, length, 8);
    } else if (length >= 4) {
      add_run(pieces.of_4, first, length, 4);
    } else if (length >= 2) {
      add_run(pieces.of_2, first, length, 2);
    } else {
      pieces.of_1.push_back(first);
    }
  }
  return pieces;
}

void gather_rows(const ColumnPieces& pieces, const MatrixRows<const float>& rows, float* compact) {
  HWY_DYNAMIC_DISPATCH(gather_all)(pieces, rows, compact);
}

void scatter_rows(const ColumnPieces& pieces, const float* compact, const MatrixRows<float>& rows) {
  HWY_DYNAMIC_DISPATCH(scatter_all)(pieces, compact, rows);
}

}  // namespace headrace::kernel
#endif
