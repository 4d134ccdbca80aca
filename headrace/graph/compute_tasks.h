// The part of a step that all policies share: forward, recompute and backward on the compute lane, and the norm of the
// whole gradient. Pure; any thread.
#pragma once

#include <functional>
#include <vector>

#include "headrace/graph/step_graph.h"
#include "headrace/graph/step_shape.h"

namespace headrace::graph {

// Indices into the graph, by block.
struct ComputeTasks {
  std::vector<int32_t> first_forward;   // the forward that needs the block's new weights first
  std::vector<int32_t> first_backward;  // the backward that writes to the block's gradient first
  std::vector<int32_t> last_backward;   // after it the block's gradient is complete
};

// Called while the compute tasks are appended, to put others between them in program order. Empty ones are not called.
struct BetweenCompute {
  std::function<void(int32_t block)> before_first_forward = {};
  std::function<void(int32_t block)> after_last_backward = {};
};

// Appends the compute tasks in program order with the edges among them. Throws InternalError when the shape is not
// sound.
ComputeTasks add_compute_tasks(StepGraph& step, const StepShape& shape, const BetweenCompute& between = {});

// With clipping appends the reduce that ends when the norm of the whole gradient is known; without it returns the last
// backward, after which the whole gradient is there.
int32_t add_norm(StepGraph& step, const StepShape& shape, const ComputeTasks& compute);

}  // namespace headrace::graph
