// What the compute lane does for one block besides forward and backward: the split of its gradient, the update of its
// important part, the merge of deferred columns that came up, and columns that change sides. The compute lane's thread
// only; libtorch's intra-op threads work inside the update and change no bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/kernel/adamw_channels.h"
#include "headrace/policy/step.h"
#include "headrace/policy/zenflow/column_score.h"
#include "headrace/policy/zenflow/columns.h"
#include "headrace/policy/zenflow/storage.h"

namespace headrace::policy::zenflow {

struct DeviceBlock {
  BlockColumns& columns;
  const model::BlockBuffers& buffers;
  const ImportantPart& part;
};

// Of the parts of the gradient that no piece holds: vectors, and matrices whose columns are all important.
void split_undeferred(const DeviceBlock& block, std::vector<ColumnScore>& scores);
// Of a piece: its deferred columns to `send`, its important ones to their part, and the squares of all to the scores.
// Important rows (where channels are rows) go with the matrix's first line.
void split_piece(const DeviceBlock& block, size_t piece, float* send, std::vector<ColumnScore>& scores);

// One AdamW step of everything important; advances its counters. `learning_rate` is this step's.
void update_important(const DeviceBlock& block, const OptimizerSettings& optimizer, double learning_rate,
                      float clip_factor);

// The piece's new deferred columns, as they came up, into the weights.
void merge_piece(const DeviceBlock& block, size_t piece, const float* staging);

// State of the columns of the piece that leave, as they are now, to `send`.
void release_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps, float* send);
// State of the columns that come, from `staging`, to the places of those that left; the swaps have been made.
void adopt_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps, float* staging);

}  // namespace headrace::policy::zenflow
