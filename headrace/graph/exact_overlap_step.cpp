#include "headrace/graph/exact_overlap_step.h"

#include <map>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/graph/compute_tasks.h"

namespace headrace::graph {
namespace {

class Builder {
 public:
  Builder(const StepShape& shape, int32_t num_device_blocks)
      : shape_(shape), num_device_blocks_(num_device_blocks), compute_(add_compute_tasks(step_, shape)) {
    norm_ = add_norm(step_, shape, compute_);
    offloads_.resize(shape.blocks.size());
  }

  StepGraph build() {
    for (int32_t b = 0; b < num_device_blocks_; ++b) add_device_block(b);
    if (num_device_blocks_ == shape_.num_blocks()) return std::move(step_);
    for (int32_t b = num_device_blocks_; b < shape_.num_blocks(); ++b) add_host_block(b);
    if (num_device_blocks_ == 0 && shape_.needed_share > 0 && !shape_.is_tied) order_steps_of_first_block();
    share_gradient_slots();
    step_.graph.set_lanes(LaneKind::kD2h, 1);
    step_.graph.set_lanes(LaneKind::kHostUpdate, shape_.host_workers);
    step_.graph.set_lanes(LaneKind::kH2d, 1);
    return std::move(step_);
  }

 private:
  void add_device_block(int32_t block) {
    const int32_t update = step_.graph.add(
        {.kind = TaskKind::kDeviceUpdate, .lane = LaneKind::kCompute, .block = block, .deadline = block});
    step_.graph.connect(last_backward(block), update);
    if (shape_.clip) step_.graph.connect(norm_, update);
    step_.wait_for_previous({.kind = TaskKind::kDeviceUpdate, .block = block}, first_forward(block));
  }

  void add_host_block(int32_t block) {
    for (int32_t p = 0; p < num_pieces(block); ++p) add_piece(block, p);
  }

  // Gradient down, update, weights up. The norm is waited for only when it clips.
  void add_piece(int32_t block, int32_t piece) {
    const BlockShape& bytes = shape_.blocks[static_cast<size_t>(block)];
    const auto add = [&](TaskKind kind, LaneKind lane, int64_t size, int64_t deadline) {
      return step_.graph.add({.kind = kind,
                              .lane = lane,
                              .block = block,
                              .piece = name_of_piece(block, piece),
                              .bytes = shape_.piece_bytes(block, piece, size),
                              .deadline = deadline});
    };
    const int64_t deadline = deadline_of(block, piece);
    const bool has_slot = shape_.gradient_slot(block, num_device_blocks_) != kOwnBuffer;
    const int32_t offload =
        add(TaskKind::kOffload, LaneKind::kD2h, bytes.gradient_bytes, has_slot ? -1 - block : deadline);
    const int32_t update = add(TaskKind::kHostUpdate, LaneKind::kHostUpdate, bytes.update_bytes, deadline);
    const int32_t fetch = add(TaskKind::kFetch, LaneKind::kH2d, bytes.weight_bytes, deadline);
    step_.graph.connect(last_backward(block), offload);
    step_.graph.connect(offload, update);
    if (shape_.clip) step_.graph.connect(norm_, update);
    step_.graph.connect(update, fetch);
    offloads_[static_cast<size_t>(block)].push_back(offload);
    if (!is_needed_late(block, piece)) {
      step_.wait_for_previous(previous(TaskKind::kFetch, block, piece), first_forward(block));
    } else if (shape_.is_tied) {
      step_.wait_for_previous(previous(TaskKind::kFetch, block, piece), first_forward(shape_.num_blocks() - 1));
    }
  }

  // An untied embedding whose late pieces no forward waits for. They may still be on their way when the next step has
  // its gradient: it is written only after the old one has gone down, and goes down only after all that the old one
  // changes has gone up, since the rows of a piece are others at each step. The next norm waits until the old one has
  // been used.
  void order_steps_of_first_block() {
    for (int32_t p = 1; p < num_pieces(0); ++p) {
      step_.wait_for_previous(previous(TaskKind::kOffload, 0, p), compute_.first_backward.front());
      if (shape_.clip) step_.wait_for_previous(previous(TaskKind::kHostUpdate, 0, p), norm_);
      for (const int32_t offload : offloads_.front()) {
        step_.wait_for_previous(previous(TaskKind::kFetch, 0, p), offload);
      }
    }
  }

  // Across steps nothing is to be done: a forward waits for all that its block's slot was used for.
  void share_gradient_slots() {
    std::map<int32_t, int32_t> last_user;
    for (int32_t b = shape_.num_blocks(); b-- > 0;) {
      const int32_t slot = shape_.gradient_slot(b, num_device_blocks_);
      if (slot == kOwnBuffer) continue;
      const auto [user, is_first] = last_user.try_emplace(slot, b);
      if (is_first) continue;
      for (const int32_t offload : offloads_[static_cast<size_t>(user->second)]) {
        step_.graph.connect(offload, compute_.first_backward[static_cast<size_t>(b)]);
      }
      user->second = b;
    }
  }

  bool is_needed_late(int32_t block, int32_t piece) const { return block == 0 && piece > 0 && shape_.needed_share > 0; }
  // Late pieces of a tied embedding are needed by the head, those of another by no forward of the next step.
  int64_t deadline_of(int32_t block, int32_t piece) const {
    if (!is_needed_late(block, piece)) return block;
    return shape_.is_tied ? shape_.num_blocks() - 1 : shape_.num_blocks();
  }
  int32_t num_pieces(int32_t block) const { return shape_.blocks[static_cast<size_t>(block)].num_pieces; }
  int32_t name_of_piece(int32_t block, int32_t piece) const { return num_pieces(block) > 1 ? piece : kWholeBlock; }
  PreviousTask previous(TaskKind kind, int32_t block, int32_t piece) const {
    return {.kind = kind, .block = block, .piece = name_of_piece(block, piece)};
  }
  int32_t first_forward(int32_t block) const { return compute_.first_forward[static_cast<size_t>(block)]; }
  int32_t last_backward(int32_t block) const { return compute_.last_backward[static_cast<size_t>(block)]; }

  const StepShape& shape_;
  int32_t num_device_blocks_;
  StepGraph step_;
  ComputeTasks compute_;
  int32_t norm_ = -1;
  std::vector<std::vector<int32_t>> offloads_;  // by block, of its pieces
};

}  // namespace

StepGraph exact_overlap_step(const StepShape& shape, int32_t num_device_blocks) {
  if (num_device_blocks < 0 || num_device_blocks > shape.num_blocks()) {
    throw InternalError("graph.build", std::to_string(num_device_blocks) + " blocks on the device, of " +
                                           std::to_string(shape.num_blocks()) + ".");
  }
  return Builder(shape, num_device_blocks).build();
}

}  // namespace headrace::graph
