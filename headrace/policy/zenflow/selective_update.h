// What the compute lane does for one block besides forward and backward: the split of its gradient, the update of its
// important part, the merge of deferred columns that came up, and columns that change sides. On the host's cores, or on
// a GPU with the same bits but for the scores (kernel/cuda/channels.h). The compute lane's thread only; libtorch's
// intra-op threads work inside the host's update and change no bit.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/kernel/adamw_channels.h"
#include "headrace/policy/step.h"
#include "headrace/policy/zenflow/column_score.h"
#include "headrace/policy/zenflow/columns.h"
#include "headrace/policy/zenflow/storage.h"

namespace headrace::policy::zenflow {

struct DeviceBlock {
  size_t index;
  BlockColumns& columns;
  const model::BlockBuffers& buffers;
  const ImportantPart& part;
};

class SelectiveUpdate {
 public:
  using Scores = std::vector<ColumnScore>;  // of a block, by matrix

  SelectiveUpdate() = default;
  virtual ~SelectiveUpdate() = default;
  SelectiveUpdate(const SelectiveUpdate&) = delete;
  SelectiveUpdate& operator=(const SelectiveUpdate&) = delete;

  // Of the parts of the gradient that no piece holds: vectors, and matrices whose columns are all important.
  virtual void split_undeferred(const DeviceBlock& block, Scores& scores) = 0;
  // Of a piece: its deferred columns to `send`, its important ones to their part, and the squares of all to the scores.
  // Important rows (where channels are rows) go with the matrix's first line.
  virtual void split_piece(const DeviceBlock& block, size_t piece, float* send, Scores& scores) = 0;
  // Brings squares that are still on the device to the scores, by block: before a step's scores are read.
  virtual void take_scores(std::span<Scores* const> blocks) = 0;

  // One AdamW step of everything important; advances its counters. `learning_rate` is this step's.
  virtual void update_important(const DeviceBlock& block, const OptimizerSettings& optimizer, double learning_rate,
                                float clip_factor) = 0;

  // The piece's new deferred columns, as they came up, into the weights.
  virtual void merge_piece(const DeviceBlock& block, size_t piece, const float* staging) = 0;

  // State of the columns of the piece that leave, as they are now, to `send`.
  virtual void release_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps,
                               float* send) = 0;
  // State of the columns that come, from `staging`, to the places of those that left; the swaps have been made.
  virtual void adopt_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps,
                             float* staging) = 0;
};

std::unique_ptr<SelectiveUpdate> make_host_selective_update();

// With kernel/cuda; queues work on libtorch's default stream. `device` and its memory, in which all buffers lie, must
// outlive it. Throws DeviceError when a launch is refused.
std::unique_ptr<SelectiveUpdate> make_gpu_selective_update(const device::Device& device,
                                                           const std::vector<BlockColumns>& columns);

// How everything of a kind is updated in a step of this rate.
inline kernel::ChannelAdamW channel_adamw(const OptimizerSettings& optimizer, double learning_rate, bool decays) {
  const double decay = decays ? optimizer.weight_decay : 0;
  return {learning_rate, optimizer.beta1, optimizer.beta2, optimizer.epsilon,
          static_cast<float>(1 - learning_rate * decay)};
}
inline kernel::AdamWStep vector_adamw(const OptimizerSettings& optimizer, double learning_rate, bool decays,
                                      int64_t update) {
  return {.learning_rate = learning_rate,
          .beta1 = optimizer.beta1,
          .beta2 = optimizer.beta2,
          .epsilon = optimizer.epsilon,
          .weight_decay = decays ? optimizer.weight_decay : 0,
          .step = update};
}

}  // namespace headrace::policy::zenflow
