// Where every byte of an offloaded run will go, by tier, and what of the device's budget decides: how many gradient
// buffers blocks share and in which order micro-batches run. Known before anything is allocated. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/config/model_shape.h"
#include "headrace/graph/step_shape.h"
#include "headrace/plan/memory.h"

namespace headrace::plan {

struct OffloadRequest {
  std::vector<int64_t> block_parameters;        // [elements] of each block's flat buffer
  std::vector<int64_t> block_state_parameters;  // [elements] of it that have moments
  int32_t accumulate = 1;                       // [micro-batches a step]
  int32_t device_blocks = 0;                    // first blocks whose optimizer state is on the device
  bool shares_gradients = true;                 // false: without overlap all gradients stay until backward has ended
  int64_t tokens = 0;                           // of the largest micro-batch
  int64_t trained_tokens = 0;                   // of them, at most
  bool recompute = false;
  int64_t scored_tokens = 0;  // as MemoryRequest has it
};

struct OffloadPlan {
  int32_t gradient_slots = 0;  // as graph::StepShape has it
  graph::ComputeOrder order = graph::ComputeOrder::kMicroBatchMajor;
  MemoryPlan device;
  MemoryPlan host;  // weights are the masters; no activations

  // "device: weights ... = 1.10 GiB; host: masters ... = 1.90 GiB"
  std::string text() const;
  OrderedJson to_json() const;
};

// With exactly these buffers and this order.
OffloadPlan plan_offload(const config::ModelShape& shape, const OffloadRequest& request, int32_t gradient_slots,
                         graph::ComputeOrder order);

// The plan that leaves overlap the most room within `device_budget` [bytes; 0: no limit]: a gradient buffer for each
// block, else fewer shared ones, else layer by layer through all micro-batches. Throws CapacityError naming need, have
// and knobs when none fits; its need is the smallest budget that works.
OffloadPlan choose_offload(const config::ModelShape& shape, const OffloadRequest& request, int64_t device_budget);

}  // namespace headrace::plan
