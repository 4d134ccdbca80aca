#include "headrace/policy/zenflow/lanes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/policy/zenflow/deferred_update.h"

namespace headrace::policy::zenflow {
namespace {

using device::Direction;
using graph::LaneKind;
using graph::TaskKind;

constexpr int64_t kFloat = 4;   // [bytes]
constexpr int64_t kStates = 3;  // master, m, v

[[noreturn]] void refuse(const graph::Task& task) {
  throw InternalError("policy.zenflow", graph::name_of(task) + " is no task of a link or a host worker.");
}

size_t piece_of(const graph::Task& task) { return static_cast<size_t>(std::max(0, task.piece)); }

}  // namespace

Lanes::Lanes(std::unique_ptr<device::Device> device, std::vector<BlockColumns> columns, const StorageSettings& settings,
             std::vector<device::Pace> paces)
    : device_(std::move(device)), settings_(settings), columns_(std::move(columns)), paces_(std::move(paces)) {}

void Lanes::make_storage(const std::vector<at::Tensor>& weights, std::shared_ptr<memory::Budget> device_budget,
                         std::shared_ptr<memory::Budget> host_budget) {
  storage_.emplace(*device_, columns_, settings_, weights, std::move(device_budget), std::move(host_budget));
}

void Lanes::add_plan(std::shared_ptr<StepPlan> plan) {
  const std::lock_guard lock(mutex_);
  plans_[plan->number] = std::move(plan);
}

void Lanes::drop_plans_before(int64_t number) {
  const std::lock_guard lock(mutex_);
  plans_.erase(plans_.begin(), plans_.lower_bound(number));
}

std::shared_ptr<const StepPlan> Lanes::plan_of(int64_t number) const {
  const std::lock_guard lock(mutex_);
  return plans_.at(number);
}

void Lanes::run(const graph::Task& task, int32_t lane_index) {
  if (task.lane == LaneKind::kHostUpdate) return work(task, lane_index);
  if (task.lane == LaneKind::kD2h || task.lane == LaneKind::kH2d) return copy(task);
  refuse(task);
}

void Lanes::to_host(int64_t slot, float* to, int64_t numel) {
  device_->copy(Direction::kToHost, reinterpret_cast<std::byte*>(to),
                reinterpret_cast<const std::byte*>(storage_->send_slot(slot)), numel * kFloat);
  bytes_[static_cast<size_t>(LaneKind::kD2h)] += numel * kFloat;
}

void Lanes::to_device(const float* from, int64_t slot, int64_t numel) {
  device_->copy(Direction::kToDevice, reinterpret_cast<std::byte*>(storage_->staging_slot(slot)),
                reinterpret_cast<const std::byte*>(from), numel * kFloat);
  bytes_[static_cast<size_t>(LaneKind::kH2d)] += numel * kFloat;
}

void Lanes::copy(const graph::Task& task) {
  const auto block = static_cast<size_t>(task.block), index = piece_of(task);
  const BlockColumns& columns = columns_[block];
  const DeferredPart& part = storage_->deferred(block);
  const Piece& piece = columns.pieces[index];
  const auto plan = plan_of(task.step);
  const BlockPlan& of_block = plan->blocks[block];
  if (task.kind == TaskKind::kOffload) {
    float* to = part.arrival != nullptr ? part.arrival : part.gradients[static_cast<size_t>(of_block.arrival.slot)];
    return to_host(task.slot, to + piece.begin, piece.end - piece.begin);
  }
  if (task.kind == TaskKind::kFetch) {
    return to_device(part.state.master + piece.begin, task.slot, piece.end - piece.begin);
  }
  // Columns come up in the step after the one whose plan has them change sides.
  const bool leaves = task.kind == TaskKind::kRelease;
  if (!leaves && task.kind != TaskKind::kAdopt) refuse(task);
  const auto& swaps = leaves ? of_block.update->swaps : of_block.adopted;
  if (swaps.empty()) return;
  const int64_t numel = kStates * columns.exchange_numel(piece, swaps), offset = exchange_offset(columns, index);
  exchanged_[static_cast<size_t>(task.lane)] += numel * kFloat;
  if (leaves) {
    to_host(task.slot, part.leaving + offset, numel);
  } else {
    to_device(part.coming + offset, task.slot, numel);
  }
}

void Lanes::work(const graph::Task& task, int32_t worker) {
  const auto block = static_cast<size_t>(task.block);
  const DeferredPiece at{columns_[block], piece_of(task), storage_->deferred(block)};
  const auto plan = plan_of(task.step);
  const BlockPlan& of_block = plan->blocks[block];
  device::Pace& pace = paces_[static_cast<size_t>(worker)];
  const auto begin = std::chrono::steady_clock::now();
  int64_t touched = 0;
  switch (task.kind) {
    case TaskKind::kAccumulate:
      if (!plan->is_skipped) touched = add_to_running_sum(at, of_block, pace);
      break;
    case TaskKind::kHostUpdate:
      touched = update_window(at, *of_block.update, pace);
      break;
    case TaskKind::kAdopt:
      update_early(at, *of_block.update);
      break;
    default:
      refuse(task);
  }
  bytes_[static_cast<size_t>(task.lane)] += touched;
  host_busy_ns_ += (std::chrono::steady_clock::now() - begin).count();
}

}  // namespace headrace::policy::zenflow
