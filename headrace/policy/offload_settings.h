// How the offload policy is to work. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "headrace/graph/step_shape.h"
#include "headrace/policy/step.h"

namespace headrace::policy {

enum class Overlap {
  kNone,  // the order of ZeRO-Offload: all gradients down, the host step, all weights up. The baseline
  kExact  // each block's update as soon as it may start; no bit changes
};

enum class ClipScope {
  kGlobal,  // by the norm of the whole gradient
  kBlock    // relaxed: each block by its own norm, so no update waits for the others
};

enum class ClipNorm {
  kExact,  // of this step
  kLagged  // relaxed: of the step before (the first step's own), so no update waits for backward's end
};

inline constexpr int32_t kAutoShare = -1;

struct OffloadSettings {
  OptimizerSettings optimizer = {};
  bool recompute = false;                                     // keep only block inputs between forward and backward
  std::function<bool(std::string_view name)> is_frozen = {};  // parameters that stay as they are; empty: none
  Overlap overlap = Overlap::kExact;
  ClipScope clip_scope = ClipScope::kGlobal;
  ClipNorm clip_norm = ClipNorm::kExact;

  int64_t device_budget = 0;  // [bytes] of everything on the device; 0: no limit
  int64_t host_budget = 0;    // [bytes] of masters, moments and gradients on the host; 0: no limit
  // The first blocks, whose optimizer state stays on the device. kAutoShare: after two steps, the smallest number that
  // by their times removes the stall, as far as the device's budget goes.
  int32_t num_device_blocks = 0;
  int32_t gradient_slots = 0;  // buffers on the device that blocks share for their gradients; 0: each its own
  graph::ComputeOrder order = graph::ComputeOrder::kMicroBatchMajor;

  int32_t host_workers = 1;             // >= 1
  double host_bytes_per_s = 0;          // of all workers together; imitates a slower host. 0: as fast as it is
  int64_t piece_bytes = 8 << 20;        // [bytes of weights] larger blocks travel and are updated in pieces; 0: whole
  bool sends_needed_rows_first = true;  // of a tied embedding in pieces, the rows that the next step's tokens need
  double deadline_s = 60;               // a lane's task that takes longer ends the run
  int64_t recorded_steps = 0;           // of which the trace is kept
};

}  // namespace headrace::policy
