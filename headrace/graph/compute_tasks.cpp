#include "headrace/graph/compute_tasks.h"

namespace headrace::graph {
namespace {

// Index of a block's task with a micro-batch.
struct Grid {
  Grid(int32_t num_blocks, int32_t num_micro_batches)
      : width(static_cast<size_t>(num_micro_batches)), index(static_cast<size_t>(num_blocks) * width) {}
  int32_t& at(int32_t block, int32_t micro_batch) {
    return index[static_cast<size_t>(block) * width + static_cast<size_t>(micro_batch)];
  }
  size_t width;
  std::vector<int32_t> index;
};

int32_t add_compute(StepGraph& step, TaskKind kind, int32_t block, int32_t micro_batch) {
  return step.graph.add({.kind = kind, .lane = LaneKind::kCompute, .block = block, .micro_batch = micro_batch});
}

// One block's backward with one micro-batch, after `recompute` where asked for.
void add_backward(StepGraph& step, const StepShape& shape, Grid& forward, Grid& backward, int32_t block,
                  int32_t micro) {
  const bool is_last = block + 1 == shape.num_blocks();
  const int32_t before = is_last ? forward.at(block, micro) : backward.at(block + 1, micro);
  int32_t recompute = before;
  if (shape.recompute) {
    recompute = add_compute(step, TaskKind::kRecompute, block, micro);
    step.graph.connect(before, recompute);
  }
  backward.at(block, micro) = add_compute(step, TaskKind::kBackward, block, micro);
  step.graph.connect(recompute, backward.at(block, micro));
}

void add_forward(StepGraph& step, Grid& forward, int32_t block, int32_t micro) {
  forward.at(block, micro) = add_compute(step, TaskKind::kForward, block, micro);
  if (block > 0) step.graph.connect(forward.at(block - 1, micro), forward.at(block, micro));
}

}  // namespace

ComputeTasks add_compute_tasks(StepGraph& step, const StepShape& shape, const BetweenCompute& between) {
  require_sound(shape);
  const int32_t blocks = shape.num_blocks(), micros = shape.accumulate;
  Grid forward(blocks, micros), backward(blocks, micros);
  const auto add_next_forward = [&](int32_t block, int32_t micro) {
    if (micro == 0 && between.before_first_forward) between.before_first_forward(block);
    add_forward(step, forward, block, micro);
  };
  const auto add_next_backward = [&](int32_t block, int32_t micro) {
    add_backward(step, shape, forward, backward, block, micro);
    if (micro + 1 == micros && between.after_last_backward) between.after_last_backward(block);
  };
  if (shape.order == ComputeOrder::kMicroBatchMajor) {
    const int32_t num_last = blocks > 1 ? 1 : 0;  // blocks whose backward comes at the very end
    for (int32_t m = 0; m < micros; ++m) {
      for (int32_t b = 0; b < blocks; ++b) add_next_forward(b, m);
      for (int32_t b = blocks; b-- > num_last;) add_next_backward(b, m);
    }
    for (int32_t m = 0; m < micros && num_last > 0; ++m) add_next_backward(0, m);
  } else {
    for (int32_t b = 0; b < blocks; ++b) {
      for (int32_t m = 0; m < micros; ++m) add_next_forward(b, m);
    }
    for (int32_t b = blocks; b-- > 0;) {
      for (int32_t m = 0; m < micros; ++m) add_next_backward(b, m);
    }
  }
  step.graph.set_lanes(LaneKind::kCompute, 1);
  ComputeTasks tasks;
  for (int32_t b = 0; b < blocks; ++b) {
    tasks.first_forward.push_back(forward.at(b, 0));
    tasks.first_backward.push_back(backward.at(b, 0));
    tasks.last_backward.push_back(backward.at(b, micros - 1));
  }
  return tasks;
}

int32_t add_norm(StepGraph& step, const StepShape& shape, const ComputeTasks& compute) {
  if (!shape.clip) return compute.last_backward.front();
  const int32_t reduce = add_compute(step, TaskKind::kReduce, kWholeModel, kWholeStep);
  for (const int32_t backward : compute.last_backward) step.graph.connect(backward, reduce);
  return reduce;
}

}  // namespace headrace::graph
