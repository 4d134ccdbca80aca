// What a step's graph is built from: the model as blocks and how a step goes through them. Plain data.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace::graph {

struct BlockShape {
  int64_t weight_bytes = 0;    // travelling weight, host to device
  int64_t gradient_bytes = 0;  // device to host, once a step
  int64_t update_bytes = 0;    // touched by the host update: gradient, master, moments, weight, read and written
};

// Which micro-batches follow each other on the compute lane.
enum class ComputeOrder {
  kMicroBatchMajor,  // all blocks with one micro-batch, then with the next
  kLayerMajor        // one block with all micro-batches, then the next block (Cephalo): gradients are complete early
};

struct StepShape {
  std::vector<BlockShape> blocks;  // in forward order
  int32_t accumulate = 1;          // [micro-batches a step] >= 1
  bool recompute = false;          // forward again before each backward
  bool clip = false;               // by the exact global norm: no update before the whole gradient is there
  ComputeOrder order = ComputeOrder::kMicroBatchMajor;
  int32_t host_workers = 1;  // lanes of host_update >= 1

  int32_t num_blocks() const { return static_cast<int32_t>(blocks.size()); }
};

}  // namespace headrace::graph
