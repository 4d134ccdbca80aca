// headrace/kernel/channels.h on one device: the same functions on pointers into its memory. Gathered and scattered bits
// are the host's; scores are sums in double of another, fixed order: the same in each run, and the host's within 1e-6.
// Each queues its launches on `stream` (null: the default one) and returns; the caller owns all buffers and keeps them
// until the stream has passed. Accesses are 16 bytes wide where widths and addresses allow.
// All throw InternalError when shapes and lines disagree (what device memory holds is trusted), DeviceError when a
// launch is refused. Errors of a kernel itself surface at the caller's next wait.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/kernel/channels.h"

struct CUstream_st;  // what CUDA's headers call *cudaStream_t

namespace headrace::kernel::cuda {

// A list of channels in device memory.
struct ChannelList {
  const int32_t* channels = nullptr;
  int64_t count = 0;
};

// The chosen lines of the whole matrix to compact [lines.count(), line_width].
void gather_channels(const float* matrix, const MatrixShape& shape, const ChannelList& chosen, Lines lines,
                     float* compact, CUstream_st* stream);

// The inverse. No other element of the matrix is touched.
void scatter_channels(const float* compact, const MatrixShape& shape, const ChannelList& chosen, Lines lines,
                      float* matrix, CUstream_st* stream);

// Scores [num_channels] of doubles, and room for the parts of their sums: score_workspace doubles.
struct ScoreBuffers {
  double* scores = nullptr;
  double* workspace = nullptr;
};
int64_t score_workspace(const MatrixShape& shape, Lines rows);

// Adds the squares of the storage rows to the scores.
void add_channel_scores(const float* matrix, const MatrixShape& shape, Lines rows, const ScoreBuffers& buffers,
                        CUstream_st* stream);

// By column, where split_columns puts it: an important one at its position, a deferred one at -1 - its position.
// Columns in neither list go nowhere. On the host, once a selection.
// Throws InternalError when a column is outside of the matrix or in both lists.
std::vector<int32_t> column_places(std::span<const int32_t> important, std::span<const int32_t> deferred,
                                   const MatrixShape& shape);

// What a split writes. `places` is column_places in device memory.
struct ColumnSides {
  const int32_t* places = nullptr;
  float* important = nullptr;  // compact [rows.count(), num_important]
  int64_t num_important = 0;
  float* deferred = nullptr;  // compact [rows.count(), num_deferred]
  int64_t num_deferred = 0;
};

// Both sides of the same storage rows and their scores while reading the matrix once. Channels must be columns.
void split_columns(const float* matrix, const MatrixShape& shape, Lines rows, const ColumnSides& sides,
                   const ScoreBuffers& buffers, CUstream_st* stream);

}  // namespace headrace::kernel::cuda
