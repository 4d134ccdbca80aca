#include "headrace/kernel/channels.h"

#include <algorithm>

#include "headrace/base/errors.h"
#include "headrace/kernel/channel_checks.h"
#include "headrace/kernel/column_pieces.h"
#include "headrace/kernel/squared_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/channels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kBlock = 16;  // [columns] of one cache line

// A square of fp32 is exact in double, so a column's score is one rounded sum in the order of its rows.
template <class D>
HWY_INLINE void add_squares_at(D d, const MatrixRows<const float>& rows, size_t column, double* HWY_RESTRICT scores) {
  const hn::Rebind<float, D> f;
  const float* HWY_RESTRICT values = rows.first + column;
  auto sum = hn::LoadU(d, scores + column);
  for (size_t row = 0; row < rows.count; ++row) {
    const auto x = hn::PromoteTo(d, hn::LoadU(f, values + row * rows.width));
    sum = hn::Add(sum, hn::Mul(x, x));
  }
  hn::StoreU(sum, d, scores + column);
}

// While it reads some rows it fetches as many below them, which come next.
void add_squares(const MatrixRows<const float>& rows, double* scores) {
  const hn::CappedTag<double, kBlock> d;
  const hn::CappedTag<double, 1> one;
  size_t column = 0;
  for (; column + kBlock <= rows.width; column += kBlock) {
    const float* next = rows.first + rows.count * rows.width + column;
    for (size_t row = 0; row < rows.count; ++row) hwy::Prefetch(next + row * rows.width);
    for (size_t i = 0; i < kBlock; i += hn::Lanes(d)) add_squares_at(d, rows, column + i, scores);
  }
  for (; column < rows.width; ++column) add_squares_at(one, rows, column, scores);
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(add_squares);

constexpr int64_t kTileBytes = 16384;  // rows that stay in the first-level cache between two looks at them

// What a gather and a scatter must agree on.
void check(const char* verb, size_t matrix, const MatrixShape& shape, std::span<const int32_t> channels, Lines lines,
           size_t compact) {
  expect_matrix(verb, matrix, shape);
  expect_channels(verb, channels, shape);
  expect_length(verb, "compact form", compact, compact_length(verb, shape, lines, channels.size()));
}

template <class Float>
MatrixRows<Float> rows_of(std::span<Float> matrix, const MatrixShape& shape, Lines rows) {
  return {matrix.data() + rows.begin * shape.width, static_cast<size_t>(rows.count()),
          static_cast<size_t>(shape.width)};
}

// Calls body(tile) for rows that fit the tile, at least one at a time.
template <class Body>
void for_each_tile(const MatrixShape& shape, Lines rows, const Body& body) {
  const int64_t row_bytes = std::max<int64_t>(1, shape.width) * static_cast<int64_t>(sizeof(float));
  const int64_t step = std::max<int64_t>(1, kTileBytes / row_bytes);
  for (int64_t begin = rows.begin; begin < rows.end; begin += step) {
    body(Lines{begin, std::min(begin + step, rows.end)});
  }
}

void check_scores(const char* verb, size_t matrix, const MatrixShape& shape, Lines rows, size_t scores) {
  expect_matrix(verb, matrix, shape);
  expect_within(verb, rows, shape.rows);
  expect_length(verb, "scores", scores, static_cast<size_t>(shape.num_channels()));
}

}  // namespace

void gather_channels(std::span<const float> matrix, const MatrixShape& shape, std::span<const int32_t> channels,
                     Lines lines, std::span<float> compact) {
  check("kernel.gather_channels", matrix.size(), shape, channels, lines, compact.size());
  if (compact.empty()) return;
  if (shape.axis == Axis::kColumns) {
    return gather_rows(column_pieces(channels), rows_of(matrix, shape, lines), compact.data());
  }
  float* to = compact.data();
  for (int64_t line = lines.begin; line < lines.end; ++line, to += shape.width) {
    std::copy_n(matrix.data() + channels[static_cast<size_t>(line)] * shape.width, shape.width, to);
  }
}

void scatter_channels(std::span<const float> compact, const MatrixShape& shape, std::span<const int32_t> channels,
                      Lines lines, std::span<float> matrix) {
  check("kernel.scatter_channels", matrix.size(), shape, channels, lines, compact.size());
  if (compact.empty()) return;
  if (shape.axis == Axis::kColumns) {
    return scatter_rows(column_pieces(channels), compact.data(), rows_of(matrix, shape, lines));
  }
  const float* from = compact.data();
  for (int64_t line = lines.begin; line < lines.end; ++line, from += shape.width) {
    std::copy_n(from, shape.width, matrix.data() + channels[static_cast<size_t>(line)] * shape.width);
  }
}

void add_channel_scores(std::span<const float> matrix, const MatrixShape& shape, Lines rows, std::span<double> scores) {
  check_scores("kernel.add_channel_scores", matrix.size(), shape, rows, scores.size());
  if (shape.axis == Axis::kColumns) {
    for_each_tile(shape, rows, [&](Lines tile) {
      HWY_DYNAMIC_DISPATCH(add_squares)(rows_of(matrix, shape, tile), scores.data());
    });
    return;
  }
  const auto width = static_cast<size_t>(shape.width);
  for (auto row = static_cast<size_t>(rows.begin); row < static_cast<size_t>(rows.end); ++row) {
    scores[row] += squared_norm(matrix.subspan(row * width, width));
  }
}

void split_columns(std::span<const float> matrix, const MatrixShape& shape, Lines rows, const ColumnSide& important,
                   const ColumnSide& deferred, std::span<double> scores) {
  constexpr auto kVerb = "kernel.split_columns";
  if (shape.axis != Axis::kColumns) throw InternalError(kVerb, "the channels are rows and must be columns.");
  check_scores(kVerb, matrix.size(), shape, rows, scores.size());
  for (const ColumnSide* side : {&important, &deferred}) {
    check(kVerb, matrix.size(), shape, side->channels, rows, side->compact.size());
  }
  const ColumnPieces pieces[] = {column_pieces(important.channels), column_pieces(deferred.channels)};
  float* to[] = {important.compact.data(), deferred.compact.data()};
  for_each_tile(shape, rows, [&](Lines tile) {
    const auto read = rows_of(matrix, shape, tile);
    HWY_DYNAMIC_DISPATCH(add_squares)(read, scores.data());
    for (const size_t side : {0, 1}) {
      gather_rows(pieces[side], read, to[side]);
      to[side] += read.count * pieces[side].count;
    }
  });
}

}  // namespace headrace::kernel
#endif
