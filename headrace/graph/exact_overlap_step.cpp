#include "headrace/graph/exact_overlap_step.h"

#include "headrace/base/errors.h"
#include "headrace/graph/compute_tasks.h"

namespace headrace::graph {
namespace {

// Gradient down, update, weights up. `norm` is waited for only when it clips.
void add_host_block(StepGraph& step, const StepShape& shape, const ComputeTasks& compute, int32_t block, int32_t norm) {
  const auto at = static_cast<size_t>(block);
  const BlockShape& bytes = shape.blocks[at];
  const auto add = [&](TaskKind kind, LaneKind lane, int64_t size) {
    return step.graph.add({.kind = kind, .lane = lane, .block = block, .bytes = size, .deadline = block});
  };
  const int32_t offload = add(TaskKind::kOffload, LaneKind::kD2h, bytes.gradient_bytes);
  const int32_t update = add(TaskKind::kHostUpdate, LaneKind::kHostUpdate, bytes.update_bytes);
  const int32_t fetch = add(TaskKind::kFetch, LaneKind::kH2d, bytes.weight_bytes);
  step.graph.connect(compute.last_backward[at], offload);
  step.graph.connect(offload, update);
  if (shape.clip) step.graph.connect(norm, update);
  step.graph.connect(update, fetch);
  step.wait_for_previous({.kind = TaskKind::kFetch, .block = block}, compute.first_forward[at]);
}

void add_device_block(StepGraph& step, const StepShape& shape, const ComputeTasks& compute, int32_t block,
                      int32_t norm) {
  const auto at = static_cast<size_t>(block);
  const int32_t update =
      step.graph.add({.kind = TaskKind::kDeviceUpdate, .lane = LaneKind::kCompute, .block = block, .deadline = block});
  step.graph.connect(compute.last_backward[at], update);
  if (shape.clip) step.graph.connect(norm, update);
  step.wait_for_previous({.kind = TaskKind::kDeviceUpdate, .block = block}, compute.first_forward[at]);
}

}  // namespace

StepGraph exact_overlap_step(const StepShape& shape, int32_t num_device_blocks) {
  if (num_device_blocks < 0 || num_device_blocks > shape.num_blocks()) {
    throw InternalError("graph.build", std::to_string(num_device_blocks) + " blocks on the device, of " +
                                           std::to_string(shape.num_blocks()) + ".");
  }
  StepGraph step;
  const ComputeTasks compute = add_compute_tasks(step, shape);
  const int32_t norm = add_norm(step, shape, compute);
  for (int32_t b = 0; b < num_device_blocks; ++b) add_device_block(step, shape, compute, b, norm);
  if (num_device_blocks == shape.num_blocks()) return step;
  for (int32_t b = num_device_blocks; b < shape.num_blocks(); ++b) add_host_block(step, shape, compute, b, norm);
  step.graph.set_lanes(LaneKind::kD2h, 1);
  step.graph.set_lanes(LaneKind::kHostUpdate, shape.host_workers);
  step.graph.set_lanes(LaneKind::kH2d, 1);
  return step;
}

}  // namespace headrace::graph
