// Step shapes and cost tables for the tests of the graph.
#pragma once

#include <cstdint>

#include "headrace/graph/cost_table.h"
#include "headrace/graph/regimes.h"
#include "headrace/graph/step_shape.h"

namespace headrace::graph {

// `num_blocks` equal blocks of 1000 bytes of every kind, each in `num_pieces`.
inline StepShape equal_blocks(int32_t num_blocks, bool clip = false, int32_t num_pieces = 1) {
  StepShape shape;
  shape.blocks.assign(static_cast<size_t>(num_blocks),
                      {.weight_bytes = 1000, .gradient_bytes = 1000, .update_bytes = 1000, .num_pieces = num_pieces});
  shape.clip = clip;
  return shape;
}

// Ideal links; a step of this shape costs what `costs` says in all.
inline CostTable ideal_table(const StepShape& shape, const StepCosts& costs) {
  const double blocks = shape.num_blocks(), tasks = blocks * shape.accumulate;
  CostTable table;
  table.of(LaneKind::kHostUpdate).seconds_per_byte = costs.host_update_s * shape.host_workers / (1000 * blocks);
  table.blocks.assign(shape.blocks.size(),
                      {.forward_s = costs.forward_s / tasks, .backward_s = costs.backward_s / tasks});
  return table;
}

}  // namespace headrace::graph
