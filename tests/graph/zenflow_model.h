// ZenFlow in miniature for the tests of the graph, as folded_model.h is for exact steps: every task folds what it reads
// into what it writes. Nothing is locked: only the graph's edges keep the lanes apart, and buffers are as few as the
// shape says.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/base/rng.h"
#include "tests/graph/zenflow_schedule.h"

namespace headrace::graph {

class ZenflowModel {
 public:
  // `schedule` has planned all `num_steps` and outlives the model.
  ZenflowModel(const ZenflowShape& shape, const ZenflowSchedule& schedule, int64_t num_steps)
      : shape_(shape),
        schedule_(schedule),
        blocks_(shape.blocks.size()),
        sent_(at(shape.send_slots)),
        staged_(at(shape.staging_slots)),
        micros_(at(shape.step.accumulate)),
        norms_(static_cast<size_t>(num_steps)) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      blocks_[b].inputs.resize(micros_.size());
      blocks_[b].important = mix_seed(b, 99);
      blocks_[b].pieces.resize(at(shape.blocks[b].num_pieces));
      for (PieceState& piece : blocks_[b].pieces) {
        piece.arrived.resize(static_cast<size_t>(schedule.settings().num_slots));
        piece.sums.resize(static_cast<size_t>(schedule.settings().num_sums));
      }
    }
  }

  void work(const Task& task) {
    switch (task.lane) {
      case LaneKind::kCompute:
        return compute(task);
      case LaneKind::kHostUpdate:
        return host(task);
      case LaneKind::kD2h:
        (task.kind == TaskKind::kOffload ? arrival(task, task.step) : piece_of(task).landed) = sent_[at(task.slot)];
        return;
      default:
        staged_[at(task.slot)] = task.kind == TaskKind::kFetch ? piece_of(task).master : piece_of(task).gathered;
    }
  }

  // What no number of buffers, order of lanes or delay may change.
  std::vector<uint64_t> state() const {
    std::vector<uint64_t> all{losses_};
    for (const Block& block : blocks_) {
      all.push_back(block.important);
      for (const PieceState& piece : block.pieces) {
        all.insert(all.end(), {piece.weight, piece.master, piece.moment, piece.landed, piece.gathered});
      }
    }
    return all;
  }

 private:
  struct PieceState {
    uint64_t weight = 0;                                        // on the device
    uint64_t master = 0, moment = 0, landed = 0, gathered = 0;  // on the host
    std::vector<uint64_t> arrived, sums;                        // likewise
  };
  struct Block {
    uint64_t important = 0, gradient = 0, norm = 0;
    std::vector<uint64_t> inputs;  // by micro-batch
    std::vector<PieceState> pieces;
  };
  struct Micro {
    uint64_t activation = 0, gradient = 0, recomputed = 0;
  };

  static void fold(uint64_t& into, uint64_t value) { into = mix_seed(into, value); }
  static size_t at(int32_t index) { return static_cast<size_t>(index); }
  Block& block_of(const Task& task) { return blocks_[at(task.block)]; }
  Micro& micro_of(const Task& task) { return micros_[at(task.micro_batch)]; }
  uint64_t& norm_at(int64_t step) { return norms_[static_cast<size_t>(step)]; }
  static size_t index_of(const Task& task) { return at(task.piece == kWholeBlock ? 0 : task.piece); }
  PieceState& piece_of(const Task& task) { return block_of(task).pieces[index_of(task)]; }
  bool has_sum(const Task& task) const { return shape_.blocks[at(task.block)].accumulate_bytes > 0; }
  uint64_t& arrival(const Task& task, int64_t step) {
    std::vector<uint64_t>& all = piece_of(task).arrived;
    return all[has_sum(task) ? 0 : static_cast<size_t>(step) % all.size()];
  }
  uint64_t& sum(const Task& task, int64_t window) {
    std::vector<uint64_t>& all = piece_of(task).sums;
    return all[static_cast<size_t>(window) % all.size()];
  }

  void compute(const Task& task) {
    switch (task.kind) {
      case TaskKind::kForward:
        return forward(task);
      case TaskKind::kRecompute:
        return fold(micro_of(task).recomputed, block_of(task).inputs[at(task.micro_batch)]);
      case TaskKind::kBackward:
        return backward(task);
      case TaskKind::kReduce:
        return reduce(task);
      case TaskKind::kDeviceUpdate:
        fold(block_of(task).important, norm_at(task.step));
        return fold(block_of(task).important, block_of(task).gradient);
      case TaskKind::kMerge:
        piece_of(task).weight = staged_[at(task.slot)];
        return;
      case TaskKind::kAdopt:
        return fold(block_of(task).important, staged_[at(task.slot)]);
      default:  // release
        sent_[at(task.slot)] = mix_seed(block_of(task).important, index_of(task));
        return fold(block_of(task).important, 1);
    }
  }

  void read_weights(const Block& block, uint64_t& into) {
    fold(into, block.important);
    for (const PieceState& piece : block.pieces) fold(into, piece.weight);
  }

  void forward(const Task& task) {
    uint64_t& activation = micro_of(task).activation;
    if (task.block == 0) activation = mix_seed(static_cast<uint64_t>(task.step), at(task.micro_batch));
    block_of(task).inputs[at(task.micro_batch)] = activation;
    read_weights(block_of(task), activation);
    if (at(task.block) + 1 < blocks_.size()) return;
    if (shape_.step.is_tied) read_weights(blocks_.front(), activation);
    micro_of(task).gradient = activation;
    losses_ += activation * (at(task.micro_batch) + 1);
  }

  void backward(const Task& task) {
    uint64_t& passed = micro_of(task).gradient;
    Block& block = block_of(task);
    fold(passed, block.inputs[at(task.micro_batch)]);
    read_weights(block, passed);
    if (shape_.step.is_tied && at(task.block) + 1 == blocks_.size()) read_weights(blocks_.front(), passed);
    if (task.micro_batch == 0) block.gradient = 0;
    fold(block.gradient, passed);
  }

  void reduce(const Task& task) {
    if (task.block == kWholeModel) {
      for (const Block& block : blocks_) fold(norm_at(task.step), block.norm);
      return;
    }
    Block& block = block_of(task);
    block.norm = block.gradient;
    if (task.slot != kNoSlot) sent_[at(task.slot)] = mix_seed(block.gradient, index_of(task));
  }

  void host(const Task& task) {
    PieceState& piece = piece_of(task);
    const int64_t window = schedule_.window_of(task.block, task.step);
    if (task.kind == TaskKind::kAccumulate) {
      fold(sum(task, window), arrival(task, task.step));
      return fold(sum(task, window), norm_at(task.step));
    }
    const int64_t last = schedule_.last_step_of(task.block, window);
    uint64_t mean = has_sum(task) ? sum(task, window) : 0;
    for (int64_t step = schedule_.first_step_of(task.block, window); step <= task.step && !has_sum(task); ++step) {
      if (step == last && norm_at(step) == 0) break;  // a settling step has no gradient
      fold(mean, arrival(task, step));
      fold(mean, norm_at(step));
    }
    fold(piece.moment, mean);
    fold(piece.master, piece.moment);
    if (task.kind == TaskKind::kAdopt) {
      piece.gathered = mix_seed(piece.master, 7);
      return;
    }
    fold(piece.master, piece.landed);
    sum(task, window) = 0;
  }

  ZenflowShape shape_;
  const ZenflowSchedule& schedule_;
  std::vector<Block> blocks_;
  std::vector<uint64_t> sent_, staged_;  // buffers of the device, by slot
  std::vector<Micro> micros_;
  std::vector<uint64_t> norms_;  // by step: the host needs those of a whole window
  uint64_t losses_ = 0;
};

}  // namespace headrace::graph
