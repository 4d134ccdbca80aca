#include "headrace/graph/no_overlap_step.h"

#include "headrace/graph/compute_tasks.h"

namespace headrace::graph {
namespace {

// One task a block, all in a row on one link, the first after `before`. Returns the last.
int32_t add_copies(StepGraph& step, const StepShape& shape, TaskKind kind, LaneKind lane,
                   const std::vector<int32_t>& before) {
  int32_t last = -1;
  for (int32_t b = 0; b < shape.num_blocks(); ++b) {
    const BlockShape& block = shape.blocks[static_cast<size_t>(b)];
    const int64_t bytes = kind == TaskKind::kFetch ? block.weight_bytes : block.gradient_bytes;
    const int32_t copy = step.graph.add({.kind = kind, .lane = lane, .block = b, .bytes = bytes, .deadline = b});
    if (b > 0) step.graph.connect(last, copy);
    if (b == 0) {
      for (const int32_t task : before) step.graph.connect(task, copy);
    }
    last = copy;
  }
  return last;
}

// By piece, so that several workers share a block; all after the last gradient has come.
std::vector<int32_t> add_updates(StepGraph& step, const StepShape& shape, int32_t last_down) {
  std::vector<int32_t> updates;
  for (int32_t b = 0; b < shape.num_blocks(); ++b) {
    const BlockShape& block = shape.blocks[static_cast<size_t>(b)];
    for (int32_t p = 0; p < block.num_pieces; ++p) {
      updates.push_back(step.graph.add({.kind = TaskKind::kHostUpdate,
                                        .lane = LaneKind::kHostUpdate,
                                        .block = b,
                                        .piece = block.num_pieces > 1 ? p : kWholeBlock,
                                        .bytes = shape.piece_bytes(b, p, block.update_bytes),
                                        .deadline = b}));
      step.graph.connect(last_down, updates.back());
    }
  }
  return updates;
}

}  // namespace

StepGraph no_overlap_step(const StepShape& shape) {
  StepGraph step;
  const ComputeTasks compute = add_compute_tasks(step, shape);
  const int32_t whole_gradient = add_norm(step, shape, compute);
  const int32_t last_down = add_copies(step, shape, TaskKind::kOffload, LaneKind::kD2h, {whole_gradient});
  const std::vector<int32_t> updates = add_updates(step, shape, last_down);
  add_copies(step, shape, TaskKind::kFetch, LaneKind::kH2d, updates);
  step.wait_for_previous({.kind = TaskKind::kFetch, .block = shape.num_blocks() - 1}, compute.first_forward.front());
  step.graph.set_lanes(LaneKind::kD2h, 1);
  step.graph.set_lanes(LaneKind::kHostUpdate, shape.host_workers);
  step.graph.set_lanes(LaneKind::kH2d, 1);
  return step;
}

}  // namespace headrace::graph
