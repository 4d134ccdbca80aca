// Where every byte of a run will go, known before any of it is allocated. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/base/json.h"
#include "headrace/config/model_shape.h"

namespace headrace::plan {

// What the plan is made for.
struct MemoryRequest {
  int64_t parameters = 0;        // [elements] of all flat buffers
  int64_t state_parameters = 0;  // [elements] that have moments: the trained ones
  int64_t tokens = 0;            // of the largest micro-batch
  int64_t trained_tokens = 0;    // of them, at most
  bool recompute = false;
  int64_t scored_tokens = 0;  // of the longest document where attention holds its scores whole; 0: in tiles
  bool trains = true;         // false: inference, weights and one block's activations only
};

// [bytes] by kind, all fp32 on one tier.
struct MemoryPlan {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t moments = 0;      // m and v
  int64_t activations = 0;  // kept from forward to backward, the peak over a step
  int64_t workspace = 0;    // temporaries of the largest block and of the loss

  int64_t total() const { return weights + gradients + moments + activations + workspace; }
  Json to_json() const;
  // "weights 513 MiB + gradients 513 MiB + moments 1.00 GiB + activations 210 MiB + workspace 80 MiB = 2.29 GiB"
  std::string text() const;
};

MemoryPlan plan_memory(const config::ModelShape& shape, const MemoryRequest& request);

// Throws CapacityError naming need, have and the knobs that help when the plan exceeds `available` [bytes].
// `what` says where the limit comes from: "--host-budget", "memory available on this machine".
void require_fits(const MemoryPlan& plan, int64_t available, const std::string& what,
                  const std::string& hint = "Lower --batch or --max-length, or add --recompute.");

}  // namespace headrace::plan
