// What the tasks of one step need to know besides the graph: made by the trainer thread before the step, completed by
// it when the step's norm is known, read by the lanes after that. The graph's edges order the two.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/kernel/adamw_channels.h"
#include "headrace/policy/zenflow/gradient_ledger.h"
#include "headrace/policy/zenflow/selection.h"

namespace headrace::policy::zenflow {

// The update of a window that ends with the step.
struct WindowUpdate {
  WindowParts parts;                                 // once the norm is known; none where every step was skipped
  kernel::ChannelAdamW decaying, plain;              // matrices with weight decay, and those without
  std::vector<kernel::BiasCorrections> corrections;  // by matrix, of its deferred columns
  std::vector<std::vector<Swap>> swaps;              // by matrix; once the norm is known; empty where nothing moves
};

struct BlockPlan {
  Arrival arrival;
  float scale = 1;                         // with a running sum; once the norm is known
  std::optional<WindowUpdate> update;      // where a window ends
  std::vector<std::vector<Swap>> adopted;  // by matrix: swaps of the step before, whose columns come up now
};

struct StepPlan {
  int64_t number = 0;       // of the step as the executor counts, settling steps included
  bool is_skipped = false;  // its gradient is not finite and enters nothing; known when its norm is
  std::vector<BlockPlan> blocks;
};

}  // namespace headrace::policy::zenflow
