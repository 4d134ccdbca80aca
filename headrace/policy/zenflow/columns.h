// A block's parameters in two parts: important ones, whose state is on the device, and deferred columns, whose state is
// on the host. Each part lies compact in flat buffers of its own; a column's place in them is its position. Built by
// the trainer thread, which alone changes it, between steps; lanes read what does not change: shapes, offsets, counts.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/kernel/channels.h"
#include "headrace/model/model.h"
#include "headrace/policy/zenflow/selection.h"

namespace headrace::policy::zenflow {

// A trained matrix. Its important columns and its deferred ones are compact matrices themselves, of the same axis.
struct MatrixColumns {
  int64_t offset = 0;  // [elements] in the block's flat buffers
  kernel::MatrixShape shape;
  bool decays = false;
  std::vector<int32_t> important, deferred;  // channel by position
  std::vector<int64_t> updates;              // by channel: how often it was updated
  int64_t important_offset = 0;              // [elements] in the important part
  int64_t deferred_offset = 0;               // [elements] in the deferred part

  kernel::MatrixShape important_shape() const;  // of the compact important matrix
  kernel::MatrixShape deferred_shape() const;   // of the compact deferred matrix
  int64_t num_deferred_lines() const { return kernel::num_lines(shape, deferred.size()); }
  int64_t deferred_line_width() const { return kernel::line_width(shape, deferred.size()); }
  int64_t important_numel() const;
};

// A trained parameter of one dimension: always important.
struct Vector {
  int64_t offset = 0;  // [elements] in the block's flat buffers
  int64_t numel = 0;
  bool decays = false;
  int64_t important_offset = 0;  // [elements] in the important part
};

// Lines of a deferred matrix.
struct Segment {
  size_t matrix = 0;
  kernel::Lines lines;
};

// What goes down, is updated and comes up at a time: [begin, end) of the deferred part.
struct Piece {
  std::vector<Segment> segments;
  int64_t begin = 0, end = 0;  // [elements]
};

struct BlockColumns {
  std::vector<MatrixColumns> matrices;
  std::vector<Vector> vectors;
  int64_t vector_updates = 0;
  int64_t important_numel = 0;  // [elements] of the important part
  int64_t deferred_numel = 0;   // [elements] of the deferred part
  std::vector<Piece> pieces;    // of the deferred part; none where nothing is deferred

  // [elements] of one kind of state that crosses the link each way when columns of the piece change sides.
  int64_t exchange_numel(const Piece& piece, const std::vector<std::vector<Swap>>& swaps) const;
  // The same for any swaps.
  int64_t largest_exchange_numel(const Piece& piece) const;
};

// Frozen parameters are in neither part. At first the first columns of each matrix are important. 0 < topk_ratio <= 1;
// piece_numel > 0 [elements], exceeded by less than a line.
BlockColumns make_block_columns(const model::BlockSpec& block, const std::vector<bool>& is_frozen, double topk_ratio,
                                int64_t piece_numel);

// The swaps of a matrix whose deferred position lies in the segment.
std::vector<Swap> swaps_in(const MatrixColumns& matrix, const Segment& segment, const std::vector<Swap>& swaps);

}  // namespace headrace::policy::zenflow
