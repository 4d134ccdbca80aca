// Where every byte of a ZenFlow run will go, by tier, what of the budgets decides, and how long its windows must be for
// the host to follow. Known before anything is allocated. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/config/model_shape.h"
#include "headrace/graph/step_shape.h"
#include "headrace/plan/memory.h"

namespace headrace::plan {

struct ZenflowRequest {
  std::vector<int64_t> block_parameters = {};  // [elements] of each block's flat buffer
  int64_t important = 0;                       // [elements] of all blocks that are important
  int64_t deferred = 0;                        // [elements] of all blocks that are deferred
  int64_t ring_buffer = 0;                     // [elements] of one buffer for what goes down or comes up
  int64_t num_ring_buffers = 8;                // of both rings
  int64_t exchange = 0;                        // [elements] of state that may wait to change sides, one way
  int64_t longest_interval = 8;                // [steps] of a window
  int32_t accumulate = 1;                      // [micro-batches a step]
  int64_t tokens = 0;                          // of the largest micro-batch
  int64_t trained_tokens = 0;                  // of them, at most
  bool recompute = false;
  int64_t scored_tokens = 0;  // as MemoryRequest has it
};

struct ZenflowPlan {
  bool shares_gradient = false;  // blocks share one buffer for the gradient under way
  graph::ComputeOrder order = graph::ComputeOrder::kMicroBatchMajor;
  bool has_slots = true;  // each step's gradient has a buffer on the host; else a running sum
  MemoryPlan device;
  MemoryPlan host;  // weights are the masters, gradients those of windows; no activations

  std::string text() const;
};

ZenflowPlan plan_zenflow(const config::ModelShape& shape, const ZenflowRequest& request, bool shares_gradient,
                         bool has_slots);

// Slots where the host has room for them, since they cost it less time; a gradient buffer for each block where the
// device has. Budgets in bytes, 0: no limit. Throws CapacityError naming need, have and knobs when none fits.
ZenflowPlan choose_zenflow(const config::ModelShape& shape, const ZenflowRequest& request, int64_t device_budget,
                           int64_t host_budget);

// The host's floor: deferral does not make its work free, since gradients still have to be summed.
struct HostWork {
  double exact_update_s = 0;    // C [s]: of one exact update of all parameters, fp32, with all workers
  double step_s = 0;            // T [s]: forward and backward
  double deferred_share = 0.9;  // 1 - k
  bool has_slots = true;
};

// [s] that the host works for one window of S steps: (1 - k) (24 + 4 S) bytes a parameter with slots; with a running
// sum 8 for the first step's addition and 12 for each other's, and 28 for the update; an exact update touches 28.
double window_work_s(const HostWork& work, int64_t interval);

// The shortest window within which the host does its work, at most `longest`; 0 when none does.
int64_t shortest_interval(const HostWork& work, int64_t longest);

}  // namespace headrace::plan
