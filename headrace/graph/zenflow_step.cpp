#include "headrace/graph/zenflow_step.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/graph/compute_tasks.h"

namespace headrace::graph {
namespace {

constexpr int32_t kNone = -1;

void require(bool is_right, const std::string& text) {
  if (!is_right) throw InternalError("graph.build", text);
}

void require_sound(const ZenflowBlock& block, const std::string& name) {
  require(block.num_pieces >= 0, name + " has " + std::to_string(block.num_pieces) + " pieces.");
  const bool has_work = block.flushes || block.merge != Merge::kNone || block.migrates || block.adopts;
  require(block.num_pieces > 0 || !has_work, name + " defers nothing, but flushes, merges or migrates.");
  require(block.due_steps >= 0 && block.slot_freed_by >= 0, name + " counts steps below 0: due " +
                                                                std::to_string(block.due_steps) + ", slot freed by " +
                                                                std::to_string(block.slot_freed_by) + ".");
}

void require_sound(const ZenflowShape& shape) {
  require(!shape.blocks.empty(), "a step without blocks.");
  require(shape.send_slots >= 1 && shape.staging_slots >= 1,
          std::to_string(shape.send_slots) + " buffers for sending and " + std::to_string(shape.staging_slots) +
              " for staging, at least one of each is needed.");
  require(shape.step.gradient_slots == 0 && shape.step.needed_share == 0,
          "gradient slots and needed rows are for exact steps.");
  for (size_t b = 0; b < shape.blocks.size(); ++b) require_sound(shape.blocks[b], "block " + std::to_string(b));
}

void require_training(const ZenflowShape& shape) {
  for (const ZenflowBlock& block : shape.blocks) {
    require(block.merge == Merge::kNone || block.merge_from >= 1,
            "a merge of the update " + std::to_string(block.merge_from) + " steps back, at least 1 is needed.");
  }
}

void require_settling(const ZenflowShape& shape) {
  for (const ZenflowBlock& block : shape.blocks) {
    require(block.merge != Merge::kAfterBackward && !block.migrates,
            "a settling step has no backward and no migration.");
    require(!block.flushes || block.merge != Merge::kNone, "a settling step updates a block and does not merge it.");
    require(block.merge_from >= (block.flushes ? 0 : 1), "a settling step merges no update.");
  }
}

struct Piece {
  int32_t block;
  int32_t piece;
};

// Of a sound shape.
class Builder {
 public:
  explicit Builder(const ZenflowShape& shape)
      : shape_(shape),
        compute_shape_(shape.step),
        num_blocks_(static_cast<int32_t>(shape.blocks.size())),
        offloads_(shape.blocks.size()),
        releases_(shape.blocks.size()),
        updates_(shape.blocks.size()) {
    compute_shape_.blocks.clear();
    for (const ZenflowBlock& block : shape.blocks) {
      compute_shape_.blocks.push_back({.num_pieces = std::max(1, block.num_pieces)});
    }
    sent_.resize(static_cast<size_t>(shape.send_slots));
    staged_.assign(static_cast<size_t>(shape.staging_slots), kNone);
  }

  StepGraph training() {
    remember_sends_before();
    add_compute_tasks(step_, compute_shape_,
                      {.before_first_forward = [this](int32_t block) { settle(block); },
                       .after_last_backward = [this](int32_t block) { end_backward(block); }});
    norm_ = add(make(TaskKind::kReduce, LaneKind::kCompute, {kWholeModel, 0}));
    for (int32_t b = 0; b < num_blocks_; ++b) add(make(TaskKind::kDeviceUpdate, LaneKind::kCompute, {b, kWholeBlock}));
    for_pieces([this](const ZenflowBlock& block, Piece piece) {
      if (block.migrates) add_release(block, piece);
    });
    for_pieces([this](const ZenflowBlock& block, Piece piece) { add_host_work(block, piece); });
    return finish();
  }

  StepGraph settling() {
    for_pieces([this](const ZenflowBlock& block, Piece piece) {
      if (block.flushes) add_late_update(block, piece);
    });
    for (int32_t b = 0; b < num_blocks_; ++b) settle(b);
    return finish();
  }

 private:
  // The last task that used a buffer: of this step, or by name of the one before, or none.
  struct LastUse {
    int32_t task = kNone;
    std::optional<PreviousTask> before = {};
  };

  template <typename Function>
  void for_pieces(const Function& function) {
    for (int32_t b = 0; b < num_blocks_; ++b) {
      for (int32_t p = 0; p < block_of(b).num_pieces; ++p) function(block_of(b), Piece{b, p});
    }
  }

  // The step before sent the same pieces in the same order, and then what it released.
  void remember_sends_before() {
    size_t rank = 0;
    for (int32_t b = num_blocks_; b-- > 0;) {
      for (int32_t p = 0; p < block_of(b).num_pieces; ++p) {
        sent_[rank++ % sent_.size()].before = previous(TaskKind::kOffload, LaneKind::kD2h, {b, p});
      }
    }
  }

  // All that comes to the device before the block's forward. Adopted columns last: the merge may still hold their
  // weights from before.
  void settle(int32_t b) {
    const ZenflowBlock& block = block_of(b);
    if (block.merge == Merge::kBeforeForward) add_merges(block, b);
    for (int32_t p = 0; block.adopts && p < block.num_pieces; ++p) {
      const int32_t up = stage(TaskKind::kAdopt, TaskKind::kAdopt, {b, p}, block.exchange_bytes);
      wait_back(previous(TaskKind::kAdopt, LaneKind::kHostUpdate, {b, p}), up);
    }
  }

  void end_backward(int32_t b) {
    const ZenflowBlock& block = block_of(b);
    const auto first = static_cast<int32_t>(step_.graph.tasks.size());
    for (int32_t p = 0; p < block.num_pieces; ++p) {
      offloads_[at(b)].push_back(send(TaskKind::kReduce, TaskKind::kOffload, {b, p}, block.gradient_bytes));
    }
    if (block.num_pieces == 0) add(make(TaskKind::kReduce, LaneKind::kCompute, {b, kWholeBlock}));
    if (b + 1 == num_blocks_) wait_for_releases(first);
    if (block.merge == Merge::kAfterBackward) add_merges(block, b);
  }

  // They used send buffers after all others of the step before, whichever those were.
  void wait_for_releases(int32_t first_reduce) {
    for_pieces([&](const ZenflowBlock& block, Piece piece) {
      if (block.adopts) wait_back(previous(TaskKind::kRelease, LaneKind::kD2h, piece), first_reduce);
    });
  }

  void add_merges(const ZenflowBlock& block, int32_t b) {
    for (int32_t p = 0; p < block.num_pieces; ++p) {
      const int32_t fetch = stage(TaskKind::kFetch, TaskKind::kMerge, {b, p}, block.weight_bytes, block.staleness);
      if (block.flushes && !updates_[at(b)].empty()) {
        step_.graph.connect(updates_[at(b)][at(p)], fetch);  // a settling step's own
      } else {
        wait_back(previous(TaskKind::kHostUpdate, LaneKind::kHostUpdate, {b, p}, block.merge_from), fetch);
      }
    }
  }

  void add_release(const ZenflowBlock& block, Piece piece) {
    releases_[at(piece.block)].push_back(send(TaskKind::kRelease, TaskKind::kRelease, piece, block.exchange_bytes));
  }

  // What the host does with a piece's gradient, all of it after the norm.
  void add_host_work(const ZenflowBlock& block, Piece piece) {
    int32_t arrived = offloads_[at(piece.block)][at(piece.piece)];
    int32_t filled = arrived;  // writes what the last host update read
    if (block.accumulate_bytes > 0) {
      Task task = make(TaskKind::kAccumulate, LaneKind::kHostUpdate, piece, block.accumulate_bytes);
      task.deadline = rank_of_backward(piece.block);  // before the next gradient arrives
      if (block.has_accumulated) wait_back(previous(TaskKind::kAccumulate, LaneKind::kHostUpdate, piece), arrived);
      filled = add_after_gradient(task, arrived);
      arrived = filled;
    }
    if (block.slot_freed_by > 0) {
      wait_back(previous(TaskKind::kHostUpdate, LaneKind::kHostUpdate, piece, block.slot_freed_by), filled);
    }
    const int32_t adopt = block.migrates ? add_adoption(block, piece, arrived) : kNone;
    if (block.flushes) add_update(block, piece, arrived, adopt);
  }

  // Updates and gathers the state of columns that go to the device.
  int32_t add_adoption(const ZenflowBlock& block, Piece piece, int32_t arrived) {
    Task task = make(TaskKind::kAdopt, LaneKind::kHostUpdate, piece, block.exchange_bytes);
    task.deadline = piece.block;
    return add_after_gradient(task, arrived);
  }

  void add_update(const ZenflowBlock& block, Piece piece, int32_t arrived, int32_t adopt) {
    Task task = make(TaskKind::kHostUpdate, LaneKind::kHostUpdate, piece, block.update_bytes);
    const bool is_urgent = block.due_steps == 0;
    task.due_steps = is_urgent ? 0 : block.due_steps - 1;  // deadlines rank the step after the one they count in
    task.deadline = is_urgent ? piece.block : rank_of_backward(piece.block);
    const int32_t update = add_after_gradient(task, arrived);  // and so after this step's merge
    if (adopt == kNone) return;
    step_.graph.connect(adopt, update);
    step_.graph.connect(releases_[at(piece.block)][at(piece.piece)], update);
  }

  // Without a gradient of its own: of those that have arrived.
  void add_late_update(const ZenflowBlock& block, Piece piece) {
    Task task = make(TaskKind::kHostUpdate, LaneKind::kHostUpdate, piece, block.update_bytes);
    task.deadline = piece.block;
    const int32_t update = add(task);
    updates_[at(piece.block)].push_back(update);
    const bool has_sum = block.accumulate_bytes > 0;
    wait_back(whole_reduce_before(), update);
    wait_back(has_sum ? previous(TaskKind::kAccumulate, LaneKind::kHostUpdate, piece)
                      : previous(TaskKind::kOffload, LaneKind::kD2h, piece),
              update);
    if (block.merge_from > 0) {
      wait_back(previous(TaskKind::kHostUpdate, LaneKind::kHostUpdate, piece, block.merge_from), update);
    }
    if (!block.adopts) return;
    wait_back(previous(TaskKind::kAdopt, LaneKind::kHostUpdate, piece), update);
    wait_back(previous(TaskKind::kRelease, LaneKind::kD2h, piece), update);
  }

  int32_t add_after_gradient(const Task& task, int32_t arrived) {
    const int32_t added = add(task);
    step_.graph.connect(arrived, added);
    step_.graph.connect(norm_, added);
    return added;
  }

  // A compute task that fills a buffer and the copy that empties it; returns the copy.
  int32_t send(TaskKind fill, TaskKind empty, Piece piece, int64_t bytes) {
    Task filling = make(fill, LaneKind::kCompute, piece);
    Task emptying = make(empty, LaneKind::kD2h, piece, bytes);
    emptying.deadline = num_sent_;
    filling.slot = emptying.slot = num_sent_++ % shape_.send_slots;
    LastUse& last = sent_[at(filling.slot)];
    const int32_t from = add(filling);
    if (last.task != kNone) {
      step_.graph.connect(last.task, from);
    } else if (last.before) {
      wait_back(*last.before, from);
    }
    last.task = add(emptying);
    step_.graph.connect(from, last.task);
    return last.task;
  }

  // A copy that fills a buffer and the compute task that empties it; returns the copy. All that the step before staged
  // was emptied before its norm, after which alone there is something to adopt.
  int32_t stage(TaskKind fill, TaskKind empty, Piece piece, int64_t bytes, int64_t staleness = kNoStaleness) {
    Task filling = make(fill, LaneKind::kH2d, piece, bytes);
    Task emptying = make(empty, LaneKind::kCompute, piece);
    emptying.staleness = staleness;
    filling.deadline = num_staged_;
    filling.slot = emptying.slot = num_staged_++ % shape_.staging_slots;
    int32_t& last = staged_[at(filling.slot)];
    const int32_t up = add(filling);
    if (last != kNone) {
      step_.graph.connect(last, up);
    } else if (fill == TaskKind::kFetch) {
      wait_back(whole_reduce_before(), up);
    }
    last = add(emptying);
    step_.graph.connect(up, last);
    return up;
  }

  StepGraph finish() {
    for (const Task& task : step_.graph.tasks) {
      step_.graph.set_lanes(task.lane, task.lane == LaneKind::kHostUpdate ? shape_.step.host_workers : 1);
    }
    return std::move(step_);
  }

  Task make(TaskKind kind, LaneKind lane, Piece piece, int64_t block_bytes = 0) const {
    Task task{.kind = kind, .lane = lane, .block = piece.block, .piece = name_of_piece(piece)};
    if (block_bytes > 0) task.bytes = compute_shape_.piece_bytes(piece.block, piece.piece, block_bytes);
    return task;
  }
  int32_t add(const Task& task) { return step_.graph.add(task); }

  PreviousTask previous(TaskKind kind, LaneKind lane, Piece piece, int64_t steps_back = 1) const {
    PreviousTask name{.kind = kind, .block = piece.block, .piece = name_of_piece(piece)};
    name.lane = lane;
    name.steps_back = steps_back;
    return name;
  }
  static PreviousTask whole_reduce_before() { return {.kind = TaskKind::kReduce, .block = kWholeModel}; }
  void wait_back(const PreviousTask& name, int32_t to) {
    if (!shape_.after_drain) step_.wait_for_previous(name, to);
  }

  static size_t at(int32_t index) { return static_cast<size_t>(index); }
  const ZenflowBlock& block_of(int32_t b) const { return shape_.blocks[at(b)]; }
  int32_t name_of_piece(Piece piece) const {
    return piece.block != kWholeModel && block_of(piece.block).num_pieces > 1 ? piece.piece : kWholeBlock;
  }
  int64_t rank_of_backward(int32_t b) const { return 2 * int64_t{num_blocks_} - 1 - b; }

  const ZenflowShape& shape_;
  StepShape compute_shape_;
  int32_t num_blocks_;
  StepGraph step_;
  int32_t norm_ = kNone;
  std::vector<std::vector<int32_t>> offloads_, releases_, updates_;  // by block, of its pieces
  std::vector<LastUse> sent_;                                        // by send buffer
  std::vector<int32_t> staged_;                                      // by staging buffer: its last use
  int32_t num_sent_ = 0, num_staged_ = 0;
};

}  // namespace

StepGraph zenflow_step(const ZenflowShape& shape) {
  require_sound(shape);
  require_training(shape);
  return Builder(shape).training();
}

StepGraph settling_step(const ZenflowShape& shape) {
  require_sound(shape);
  require_settling(shape);
  return Builder(shape).settling();
}

}  // namespace headrace::graph
