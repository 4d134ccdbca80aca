// A training step in miniature for the tests of the executor: every task folds what it reads into what it writes, in
// an order that shows in the result. Nothing is locked: only the graph's edges keep the lanes apart.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/graph/step_shape.h"
#include "headrace/graph/task_graph.h"

namespace headrace::graph {

class FoldedModel {
 public:
  explicit FoldedModel(const StepShape& shape)
      : shape_(shape), blocks_(shape.blocks.size()), micros_(static_cast<size_t>(shape.accumulate)) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      blocks_[b].weight = blocks_[b].master = mix_seed(1, b);
      blocks_[b].inputs.resize(micros_.size());
    }
  }

  void work(const Task& task) {
    switch (task.kind) {
      case TaskKind::kForward:
        return forward(task);
      case TaskKind::kRecompute:
        return fold(micro_of(task).recomputed, block_of(task).inputs[static_cast<size_t>(task.micro_batch)]);
      case TaskKind::kBackward:
        return backward(task);
      case TaskKind::kReduce:
        norm_ = 0;
        for (const Block& block : blocks_) fold(norm_, block.gradient);
        return;
      case TaskKind::kOffload:
        block_of(task).arrived = block_of(task).gradient;
        return;
      case TaskKind::kHostUpdate:
        return update(block_of(task), block_of(task).arrived, block_of(task).master);
      case TaskKind::kDeviceUpdate:
        return update(block_of(task), block_of(task).gradient, block_of(task).weight);
      case TaskKind::kFetch:
        block_of(task).weight = block_of(task).master;
        return;
      default:
        return;
    }
  }

  // Everything there is, to be compared.
  std::vector<uint64_t> state() const {
    std::vector<uint64_t> all{norm_};
    for (const Block& block : blocks_) {
      all.insert(all.end(), {block.weight, block.master, block.moment, block.gradient, block.arrived});
    }
    for (const Micro& micro : micros_) all.insert(all.end(), {micro.activation, micro.gradient, micro.recomputed});
    return all;
  }

 private:
  struct Block {
    uint64_t weight = 0, master = 0, moment = 0, gradient = 0, arrived = 0;
    std::vector<uint64_t> inputs;  // by micro-batch
  };
  struct Micro {
    uint64_t activation = 0, gradient = 0, recomputed = 0;
  };

  static void fold(uint64_t& into, uint64_t value) { into = mix_seed(into, value); }
  Block& block_of(const Task& task) { return blocks_[static_cast<size_t>(task.block)]; }
  Micro& micro_of(const Task& task) { return micros_[static_cast<size_t>(task.micro_batch)]; }

  void forward(const Task& task) {
    uint64_t& activation = micro_of(task).activation;
    if (task.block == 0)
      activation = mix_seed(static_cast<uint64_t>(task.step), static_cast<uint64_t>(task.micro_batch));
    block_of(task).inputs[static_cast<size_t>(task.micro_batch)] = activation;
    fold(activation, block_of(task).weight);
  }

  void backward(const Task& task) {
    Micro& micro = micro_of(task);
    Block& block = block_of(task);
    if (task.block + 1 == shape_.num_blocks()) micro.gradient = micro.activation;
    if (task.micro_batch == 0) block.gradient = 0;
    fold(micro.gradient, block.inputs[static_cast<size_t>(task.micro_batch)]);
    fold(micro.gradient, block.weight);
    fold(block.gradient, micro.gradient);
  }

  void update(Block& block, uint64_t gradient, uint64_t& weight) {
    fold(block.moment, gradient);
    if (shape_.clip) fold(block.moment, norm_);
    fold(weight, block.moment);
  }

  StepShape shape_;
  std::vector<Block> blocks_;
  std::vector<Micro> micros_;
  uint64_t norm_ = 0;
};

}  // namespace headrace::graph
