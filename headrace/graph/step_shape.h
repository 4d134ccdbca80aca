// What a step's graph is built from: the model as blocks and how a step goes through them. Plain data, pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace::graph {

inline constexpr int32_t kOwnBuffer = -1;  // gradient slot of a block that shares none

struct BlockShape {
  int64_t weight_bytes = 0;    // travelling weight, host to device
  int64_t gradient_bytes = 0;  // device to host, once a step
  int64_t update_bytes = 0;    // touched by the host update: gradient, master, moments, weight, read and written
  // >= 1. Ranges of rows that go down, are updated and go up one by one, so that updates start earlier and a running
  // one holds up an urgent one for less time.
  int32_t num_pieces = 1;
};

// Which micro-batches follow each other on the compute lane.
enum class ComputeOrder {
  // All blocks with one micro-batch, then with the next; but backward of block 0 with all of them comes last, so that a
  // tied embedding's gradient is summed in the same order as layer by layer: all that the head adds, then all else.
  kMicroBatchMajor,
  kLayerMajor  // one block with all micro-batches, then the next block (Cephalo): gradients are complete early
};

struct StepShape {
  std::vector<BlockShape> blocks;  // in forward order
  int32_t accumulate = 1;          // [micro-batches a step] >= 1
  bool recompute = false;          // forward again before each backward
  bool clip = false;               // by the exact global norm: no update before the whole gradient is there
  ComputeOrder order = ComputeOrder::kMicroBatchMajor;
  int32_t host_workers = 1;  // lanes of host_update >= 1
  bool is_tied = false;      // the last block's head reads block 0's weights and adds to its gradient
  // Gradient buffers on the device that blocks share, round robin in backward order; 0: every block has its own. With
  // several micro-batches only in layer-major order, where a block's gradient is complete before the next begins.
  int32_t gradient_slots = 0;
  // [0..1) Share of block 0, an embedding, that the next step's tokens need; above 0 those rows are its piece 0, for
  // which alone the next forward of block 0 waits, and num_pieces is at least 2. Which rows they are may change from
  // step to step. 0: it waits for the whole block.
  double needed_share = 0;

  int32_t num_blocks() const { return static_cast<int32_t>(blocks.size()); }

  // Of `bytes` of a block those that belong to the piece (0 <= piece < num_pieces); over the pieces they sum to bytes.
  int64_t piece_bytes(int32_t block, int32_t piece, int64_t bytes) const;

  // The shared gradient buffer of a block, 0 <= slot < gradient_slots, or kOwnBuffer: without slots, for blocks updated
  // on the device (the first num_device_blocks), and for block 0 when it is tied or its pieces are not waited for in
  // full, since its buffer is then in use for longer than its turn.
  int32_t gradient_slot(int32_t block, int32_t num_device_blocks = 0) const;
};

// Throws InternalError when no step can have this shape.
void require_sound(const StepShape& shape);

}  // namespace headrace::graph
