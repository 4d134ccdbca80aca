// A training step in miniature for the tests of the graph: every task folds what it reads into what it writes, in an
// order that shows in the result. Nothing is locked: only the graph's edges keep the lanes apart. Every plan of the
// same model must end in the same state as the resident one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/graph/resident_step.h"
#include "headrace/graph/step_shape.h"
#include "headrace/graph/task_graph.h"

namespace headrace::graph {

class FoldedModel {
 public:
  explicit FoldedModel(const StepShape& shape, int32_t num_device_blocks = 0)
      : shape_(shape),
        num_device_blocks_(num_device_blocks),
        blocks_(shape.blocks.size()),
        slots_(static_cast<size_t>(shape.gradient_slots)),
        micros_(static_cast<size_t>(shape.accumulate)) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      for (size_t row = 0; row < kRows; ++row) blocks_[b].weight[row] = blocks_[b].master[row] = mix_seed(b, row);
      blocks_[b].inputs.resize(micros_.size());
    }
  }

  void work(const Task& task) {
    switch (task.kind) {
      case TaskKind::kForward:
        return forward(task);
      case TaskKind::kRecompute:
        return fold(micro_of(task).recomputed, input_of(task));
      case TaskKind::kBackward:
        return backward(task);
      case TaskKind::kReduce:
        norm_ = 0;
        for (const Block& block : blocks_) fold(norm_, block.norm);
        return;
      default:
        for (size_t row = 0; row < kRows; ++row) {
          if (task.piece == kWholeBlock || task.piece == piece_of(task, row)) move_or_update(task, row);
        }
    }
  }

  // What a plan may not change: weights, moments and the losses on the way.
  std::vector<uint64_t> state() const {
    std::vector<uint64_t> all{losses_};
    for (const Block& block : blocks_) {
      all.insert(all.end(), block.weight.begin(), block.weight.end());
      all.insert(all.end(), block.moment.begin(), block.moment.end());
    }
    return all;
  }

 private:
  static constexpr size_t kRows = 6;
  using Rows = std::array<uint64_t, kRows>;
  struct Block {
    Rows weight{}, master{}, moment{}, arrived{}, own_gradient{};
    uint64_t norm = 0;
    std::vector<uint64_t> inputs;  // by micro-batch
  };
  struct Micro {
    uint64_t activation = 0, gradient = 0, recomputed = 0;
  };

  static void fold(uint64_t& into, uint64_t value) { into = mix_seed(into, value); }
  static size_t at(int32_t index) { return static_cast<size_t>(index); }
  // Whether the step's tokens need this row of block 0.
  static bool is_needed(int64_t step, size_t row) { return mix_seed(static_cast<uint64_t>(step), row) % 3 == 0; }

  bool is_last(const Task& task) const { return task.block + 1 == shape_.num_blocks(); }
  Micro& micro_of(const Task& task) { return micros_[at(task.micro_batch)]; }
  uint64_t& input_of(const Task& task) { return blocks_[at(task.block)].inputs[at(task.micro_batch)]; }
  Rows& gradient_of(int32_t block) {
    const int32_t slot = shape_.gradient_slot(block, num_device_blocks_);
    return slot == kOwnBuffer ? blocks_[at(block)].own_gradient : slots_[at(slot)];
  }
  int32_t piece_of(const Task& task, size_t row) const {
    const int32_t count = shape_.blocks[at(task.block)].num_pieces;
    if (task.block > 0 || shape_.needed_share == 0) return static_cast<int32_t>(row) % count;
    return is_needed(task.step + 1, row) ? 0 : 1 + static_cast<int32_t>(row) % (count - 1);
  }

  void forward(const Task& task) {
    uint64_t& activation = micro_of(task).activation;
    const auto step = static_cast<uint64_t>(task.step), micro = static_cast<uint64_t>(task.micro_batch);
    if (task.block == 0) activation = mix_seed(step, micro);
    input_of(task) = activation;
    for (size_t row = 0; row < kRows; ++row) {
      if (task.block > 0 || is_needed(task.step, row)) fold(activation, blocks_[at(task.block)].weight[row]);
    }
    if (!is_last(task)) return;
    for (size_t row = 0; row < kRows && shape_.is_tied; ++row) {
      fold(activation, blocks_[0].weight[row]);
      if (task.micro_batch == 0) gradient_of(0)[row] = 0;
      fold(gradient_of(0)[row], activation + row);
    }
    micro_of(task).gradient = activation;
    losses_ += activation * (micro + 1);
  }

  void backward(const Task& task) {
    uint64_t& passed = micro_of(task).gradient;
    Block& block = blocks_[at(task.block)];
    Rows& gradient = gradient_of(task.block);
    fold(passed, input_of(task));
    for (size_t row = 0; row < kRows; ++row) {
      if (task.block > 0) fold(passed, block.weight[row]);
      if (task.micro_batch == 0 && !(task.block == 0 && shape_.is_tied)) gradient[row] = 0;
      fold(gradient[row], passed + row);
    }
    if (task.micro_batch + 1 < shape_.accumulate) return;
    block.norm = 0;
    for (const uint64_t row : gradient) fold(block.norm, row);
  }

  void move_or_update(const Task& task, size_t row) {
    Block& block = blocks_[at(task.block)];
    if (task.kind == TaskKind::kOffload) block.arrived[row] = gradient_of(task.block)[row];
    if (task.kind == TaskKind::kFetch) block.weight[row] = block.master[row];
    if (task.kind == TaskKind::kHostUpdate) update(block, row, block.arrived[row], block.master[row]);
    if (task.kind == TaskKind::kDeviceUpdate) update(block, row, gradient_of(task.block)[row], block.weight[row]);
  }

  void update(Block& block, size_t row, uint64_t gradient, uint64_t& weight) {
    fold(block.moment[row], gradient);
    if (shape_.clip) fold(block.moment[row], norm_);
    fold(weight, block.moment[row]);
  }

  StepShape shape_;
  int32_t num_device_blocks_;
  std::vector<Block> blocks_;
  std::vector<Rows> slots_;
  std::vector<Micro> micros_;
  uint64_t norm_ = 0, losses_ = 0;
};

// The state after `num_steps` with everything on the device, one task after the other.
inline std::vector<uint64_t> resident_state(StepShape shape, int64_t num_steps) {
  shape.gradient_slots = 0;
  FoldedModel model(shape, shape.num_blocks());
  const TaskGraph graph = repeat_step(resident_step(shape), num_steps);
  for (const int32_t task : topological_order(graph)) model.work(graph.tasks[static_cast<size_t>(task)]);
  return model.state();
}

}  // namespace headrace::graph
