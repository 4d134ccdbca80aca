// Gathers and scatters are bound by memory: neighbouring threads take neighbours of the compact form, and lists keep
// long runs of neighbouring columns. Scores sum the rows of a chunk in registers, chunks in a second launch.
#include <algorithm>
#include <limits>
#include <string>

#include "headrace/kernel/channel_checks.h"
#include "headrace/kernel/cuda/channels.h"
#include "headrace/kernel/cuda/launch.h"

namespace headrace::kernel::cuda {
namespace {

constexpr int kLanes = 32;                     // threads of a block side by side, on columns
constexpr int kRowLanes = kThreads / kLanes;   // and one below the other, on rows
constexpr int64_t kChunkRows = 8 * kRowLanes;  // rows whose squares one block sums
constexpr unsigned kMaxGridRows = 65535;       // what a grid's second dimension may be
constexpr int32_t kNowhere = std::numeric_limits<int32_t>::min();

// From the whole matrix to the compact form of some lines, or back.
struct Copy {
  const float* from;
  float* to;
  int64_t width;       // of the matrix
  int64_t line_width;  // of the compact form
  const int32_t* channels;
  int64_t first_line, num_lines;
};

template <int kCount, bool kGathers>
__global__ void __launch_bounds__(kThreads) copy_columns(const Copy copy) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (i >= copy.line_width) return;
  const auto columns = load_pack<kCount>(copy.channels + i);
  for (int64_t line = blockIdx.y; line < copy.num_lines; line += gridDim.y) {
    const int64_t row = (copy.first_line + line) * copy.width, compact = line * copy.line_width + i;
    if constexpr (kGathers) {
      Pack<float, kCount> values;
      for (int k = 0; k < kCount; ++k) values.at[k] = copy.from[row + columns.at[k]];
      store_pack(values, copy.to + compact);
    } else {
      const auto values = load_pack<kCount>(copy.from + compact);
      for (int k = 0; k < kCount; ++k) copy.to[row + columns.at[k]] = values.at[k];
    }
  }
}

template <int kCount, bool kGathers>
__global__ void __launch_bounds__(kThreads) copy_rows(const Copy copy) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (i >= copy.width) return;
  for (int64_t line = blockIdx.y; line < copy.num_lines; line += gridDim.y) {
    const int64_t row = copy.channels[copy.first_line + line];
    const int64_t matrix = row * copy.width + i, compact = line * copy.width + i;
    store_pack(load_pack<kCount>(copy.from + (kGathers ? matrix : compact)), copy.to + (kGathers ? compact : matrix));
  }
}

struct Split {
  int64_t width, first_row, num_rows;
  ColumnSides sides;
  double* parts;  // [chunks, width]
};

// Row `row` of this call is at its place on either side.
template <int kCount>
__device__ void put(const Pack<float, kCount>& values, const Pack<int32_t, kCount>& places, int64_t row,
                    const ColumnSides& sides) {
  for (int k = 0; k < kCount; ++k) {
    const int32_t place = places.at[k];
    if (place >= 0) {
      sides.important[row * sides.num_important + place] = values.at[k];
    } else if (place != kNowhere) {
      sides.deferred[row * sides.num_deferred - 1 - place] = values.at[k];
    }
  }
}

// A block takes kLanes * kCount columns of one chunk of rows. Without places it only sums.
template <int kCount>
__global__ void __launch_bounds__(kThreads) split_chunk(const float* matrix, const Split split) {
  const int lane = threadIdx.x % kLanes, row_lane = threadIdx.x / kLanes;
  const int64_t column = (int64_t{blockIdx.x} * kLanes + lane) * kCount;
  const int64_t first = blockIdx.y * kChunkRows, end = min(first + kChunkRows, split.num_rows);
  const bool is_inside = column < split.width, puts = is_inside && split.sides.places != nullptr;
  double sums[kCount] = {};
  Pack<int32_t, kCount> places{};
  if (puts) places = load_pack<kCount>(split.sides.places + column);
  for (int64_t row = first + row_lane; is_inside && row < end; row += kRowLanes) {
    const auto values = load_pack<kCount>(matrix + (split.first_row + row) * split.width + column);
    for (int k = 0; k < kCount; ++k) sums[k] += double{values.at[k]} * double{values.at[k]};
    if (puts) put(values, places, row, split.sides);
  }
  __shared__ double shared[kRowLanes][kLanes * kCount];
  for (int k = 0; k < kCount; ++k) shared[row_lane][lane * kCount + k] = sums[k];
  __syncthreads();
  for (int k = threadIdx.x; k < kLanes * kCount; k += kThreads) {
    const int64_t at = int64_t{blockIdx.x} * kLanes * kCount + k;
    double sum = 0;
    for (int i = 0; i < kRowLanes; ++i) sum += shared[i][k];
    if (at < split.width) split.parts[blockIdx.y * split.width + at] = sum;
  }
}

__global__ void __launch_bounds__(kThreads)
    add_parts(const double* parts, int64_t chunks, int64_t width, double* scores) {
  const int64_t column = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= width) return;
  double sum = scores[column];
  for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += parts[chunk * width + column];
  scores[column] = sum;
}

// A block a row.
template <int kCount>
__global__ void __launch_bounds__(kThreads) add_row_scores(const float* matrix, int64_t width, double* scores) {
  const float* row = matrix + blockIdx.x * width;
  double sum = 0;
  for (int64_t i = int64_t{threadIdx.x} * kCount; i < width; i += int64_t{kThreads} * kCount) {
    const auto values = load_pack<kCount>(row + i);
    for (int k = 0; k < kCount; ++k) sum += double{values.at[k]} * double{values.at[k]};
  }
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) scores[blockIdx.x] += sums[0];
}

template <int kCount, bool kGathers>
void launch_copy(const Copy& copy, Axis axis, CUstream_st* stream) {
  const auto rows = static_cast<unsigned>(std::min<int64_t>(copy.num_lines, kMaxGridRows));
  const dim3 grid(blocks_for(copy.line_width, int64_t{kThreads} * kCount), rows);
  if (axis == Axis::kColumns) {
    launch(copy_columns<kCount, kGathers>, grid, stream, copy);
  } else {
    launch(copy_rows<kCount, kGathers>, grid, stream, copy);
  }
}

template <bool kGathers>
void copy_channels(const char* verb, const Copy& copy, Axis axis, CUstream_st* stream) {
  if (copy.num_lines == 0 || copy.line_width == 0) return;
  const bool is_columns = axis == Axis::kColumns;
  const auto* compact = kGathers ? copy.to : copy.from;
  const auto* matrix = kGathers ? copy.from : copy.to;
  const bool is_wide_other = is_columns ? is_wide(copy.channels) : is_wide(matrix);
  if (copy.line_width % kWide == 0 && is_wide(compact) && is_wide_other) {
    launch_copy<kWide, kGathers>(copy, axis, stream);
  } else {
    launch_copy<1, kGathers>(copy, axis, stream);
  }
  expect_launched(verb);
}

void check(const char* verb, const MatrixShape& shape, const ChannelList& chosen, Lines lines) {
  expect_shape(verb, shape);
  expect_within(verb, lines, num_lines(shape, static_cast<size_t>(chosen.count)));
}

int64_t num_chunks(int64_t rows) { return (rows + kChunkRows - 1) / kChunkRows; }

// Also when sides are empty: scores alone.
void launch_split(const char* verb, const float* matrix, const Split& split, double* scores, CUstream_st* stream) {
  const int64_t chunks = num_chunks(split.num_rows);
  if (chunks > kMaxGridRows) {
    throw InternalError(verb, std::to_string(split.num_rows) + " rows in one call, at most " +
                                  std::to_string(kMaxGridRows * kChunkRows) + ".");
  }
  if (chunks == 0 || split.width == 0) return;
  const auto rows = static_cast<unsigned>(chunks);
  const bool is_wide_read = split.width % kWide == 0 && is_wide(matrix) && is_wide(split.sides.places);
  if (is_wide_read) {
    launch(split_chunk<kWide>, dim3(blocks_for(split.width, kLanes * kWide), rows), stream, matrix, split);
  } else {
    launch(split_chunk<1>, dim3(blocks_for(split.width, kLanes), rows), stream, matrix, split);
  }
  expect_launched(verb);
  launch(add_parts, blocks_for(split.width, kThreads), stream, split.parts, chunks, split.width, scores);
  expect_launched(verb);
}

}  // namespace

void gather_channels(const float* matrix, const MatrixShape& shape, const ChannelList& chosen, Lines lines,
                     float* compact, CUstream_st* stream) {
  constexpr auto kVerb = "kernel.cuda.gather_channels";
  check(kVerb, shape, chosen, lines);
  const int64_t width = line_width(shape, static_cast<size_t>(chosen.count));
  copy_channels<true>(kVerb, {matrix, compact, shape.width, width, chosen.channels, lines.begin, lines.count()},
                      shape.axis, stream);
}

void scatter_channels(const float* compact, const MatrixShape& shape, const ChannelList& chosen, Lines lines,
                      float* matrix, CUstream_st* stream) {
  constexpr auto kVerb = "kernel.cuda.scatter_channels";
  check(kVerb, shape, chosen, lines);
  const int64_t width = line_width(shape, static_cast<size_t>(chosen.count));
  copy_channels<false>(kVerb, {compact, matrix, shape.width, width, chosen.channels, lines.begin, lines.count()},
                       shape.axis, stream);
}

int64_t score_workspace(const MatrixShape& shape, Lines rows) {
  return shape.axis == Axis::kColumns ? num_chunks(rows.count()) * shape.width : 0;
}

void add_channel_scores(const float* matrix, const MatrixShape& shape, Lines rows, const ScoreBuffers& buffers,
                        CUstream_st* stream) {
  constexpr auto kVerb = "kernel.cuda.add_channel_scores";
  expect_shape(kVerb, shape);
  expect_within(kVerb, rows, shape.rows);
  if (shape.axis == Axis::kColumns) {
    return launch_split(kVerb, matrix, {shape.width, rows.begin, rows.count(), {}, buffers.workspace}, buffers.scores,
                        stream);
  }
  if (rows.count() == 0) return;
  const float* first = matrix + rows.begin * shape.width;
  double* scores = buffers.scores + rows.begin;
  const auto blocks = static_cast<unsigned>(rows.count());
  if (shape.width % kWide == 0 && is_wide(matrix)) {
    launch(add_row_scores<kWide>, blocks, stream, first, shape.width, scores);
  } else {
    launch(add_row_scores<1>, blocks, stream, first, shape.width, scores);
  }
  expect_launched(kVerb);
}

std::vector<int32_t> column_places(std::span<const int32_t> important, std::span<const int32_t> deferred,
                                   const MatrixShape& shape) {
  constexpr auto kVerb = "kernel.cuda.column_places";
  expect_channels(kVerb, important, shape);
  expect_channels(kVerb, deferred, shape);
  std::vector<int32_t> places(static_cast<size_t>(shape.width), kNowhere);
  for (size_t i = 0; i < important.size(); ++i) places[important[i]] = static_cast<int32_t>(i);
  for (size_t i = 0; i < deferred.size(); ++i) {
    int32_t& place = places[deferred[i]];
    if (place != kNowhere) throw InternalError(kVerb, "column " + std::to_string(deferred[i]) + " is in both lists.");
    place = -1 - static_cast<int32_t>(i);
  }
  return places;
}

void split_columns(const float* matrix, const MatrixShape& shape, Lines rows, const ColumnSides& sides,
                   const ScoreBuffers& buffers, CUstream_st* stream) {
  constexpr auto kVerb = "kernel.cuda.split_columns";
  expect_shape(kVerb, shape);
  if (shape.axis != Axis::kColumns) throw InternalError(kVerb, "the channels are rows and must be columns.");
  expect_within(kVerb, rows, shape.rows);
  launch_split(kVerb, matrix, {shape.width, rows.begin, rows.count(), sides, buffers.workspace}, buffers.scores,
               stream);
}

}  // namespace headrace::kernel::cuda
