#include "headrace/policy/offload.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/no_overlap_step.h"
#include "headrace/graph/regimes.h"
#include "headrace/optim/clip.h"
#include "headrace/policy/host_update.h"
#include "headrace/policy/lane_threads.h"
#include "headrace/policy/non_finite.h"

namespace headrace::policy {
namespace {

constexpr int64_t kFloat = 4;  // [bytes]

using graph::LaneKind;
using graph::TaskKind;

// Of an embedding: what a step's tokens need of it, for the estimate of what its first piece moves.
constexpr double kNeededShare = 0.02;

std::vector<int64_t> rows_of(std::span<const model::Batch> batches) {
  std::vector<int64_t> rows;
  for (const model::Batch& batch : batches) {
    const at::Tensor ids = batch.ids_N.contiguous();
    rows.insert(rows.end(), ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + ids.numel());
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::vector<int64_t> all_rows(int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

// Ends a step inside a task; step() says where it comes from.
struct NonFinite {};

}  // namespace

Offload::Offload(const model::Model& model, std::unique_ptr<device::Device> device,
                 const std::vector<at::Tensor>& weights, OffloadSettings settings)
    : model_(model),
      settings_(std::move(settings)),
      trained_(find_trained_blocks(model, settings_.is_frozen)),
      device_budget_(std::make_shared<memory::Budget>("device", settings_.device_budget, "--device-budget")),
      host_budget_(std::make_shared<memory::Budget>("host", settings_.host_budget, "--host-budget")),
      copy_gate_(std::make_shared<CopyGate>(model.blocks().size())) {
  validate();
  num_device_blocks_ = std::max(0, settings_.num_device_blocks);
  shape_ = shape_of(1);
  std::vector<Pieces> pieces;
  for (size_t i = 0; i < shape_.blocks.size(); ++i) {
    pieces.push_back(even_pieces(model_.blocks()[i].numel, shape_.blocks[i].num_pieces));
  }
  const double worker_bytes_per_s = settings_.host_bytes_per_s / settings_.host_workers;
  lanes_ = std::make_shared<OffloadLanes>(
      std::move(device), trained_, std::move(pieces),
      std::vector(static_cast<size_t>(settings_.host_workers), device::Pace({.bytes_per_s = worker_bytes_per_s})));
  StorageShape shape;
  for (int32_t i = 0; i < shape_.num_blocks(); ++i) {
    shape.numel.push_back(model.blocks()[static_cast<size_t>(i)].numel);
    shape.slot.push_back(shape_.gradient_slot(i, num_device_blocks_));
    shape.is_device_block.push_back(i < num_device_blocks_);
  }
  lanes_->make_storage(shape, trained_, weights, device_budget_, host_budget_);
  arena_ = make_device_arena(lanes_->device(), device_budget_);
  compute_.emplace(model_, lanes_->device(), lanes_->storage().blocks(), settings_.recompute, arena_);
  squared_norms_.assign(shape.numel.size(), 0);
  start_lanes();
}

// Again when the shape of the steps changes for good, with nothing under way.
void Offload::start_lanes() {
  first_step_ = num_steps_;
  graphs_.clear();
  lanes_->count_from(first_step_);
  // The lanes' own work does not refer to this object: it may be gone when a lane that hung wakes.
  const graph::ExecutorSettings threads =
      lane_settings(lanes_->device().cores(), settings_.host_workers, settings_.deadline_s, settings_.recorded_steps);
  executor_.emplace(threads, [this, lanes = lanes_](const graph::Task& task, int32_t lane_index) {
    if (task.lane == LaneKind::kCompute) return run_compute(task);
    lanes->run(task, lane_index);
  });
}

Offload::~Offload() = default;

void Offload::validate() const {
  const auto blocks = static_cast<int32_t>(model_.num_blocks());
  if (settings_.num_device_blocks < kAutoShare || settings_.num_device_blocks > blocks || settings_.host_workers < 1) {
    throw ConfigError("policy.offload", std::to_string(settings_.num_device_blocks) + " blocks on the device of " +
                                            std::to_string(blocks) + ", " + std::to_string(settings_.host_workers) +
                                            " host workers: at most all blocks and at least one worker.");
  }
  if (settings_.overlap == Overlap::kNone && settings_.num_device_blocks != 0) {
    throw ConfigError("policy.offload",
                      "without overlap (--overlap none) all optimizer state is on the host: leave out "
                      "--device-optimizer-share.");
  }
}

// The relaxed ways to clip need no norm of the whole gradient before updates begin, but the first step with a lagged
// norm, which has no step before it, takes its own.
bool Offload::clips_by_global_norm() const {
  if (settings_.optimizer.clip == 0 || settings_.clip_scope == ClipScope::kBlock) return false;
  return settings_.clip_norm == ClipNorm::kExact || last_norm_ < 0;
}

// Whether updates wait until the whole gradient is there.
bool Offload::has_gate() const { return settings_.optimizer.skips_non_finite || clips_by_global_norm(); }

graph::StepShape Offload::shape_of(int32_t micro_batches) const {
  graph::StepShape shape;
  for (size_t i = 0; i < trained_.groups.size(); ++i) {
    const int64_t bytes = model_.blocks()[i].numel * kFloat;
    const int64_t pieces = settings_.piece_bytes > 0 ? (bytes + settings_.piece_bytes - 1) / settings_.piece_bytes : 1;
    shape.blocks.push_back({.weight_bytes = bytes,
                            .gradient_bytes = bytes,
                            .update_bytes = trained_.groups[i].state_numel * kHostUpdateBytes,
                            .num_pieces = static_cast<int32_t>(std::max<int64_t>(1, pieces))});
  }
  shape.accumulate = micro_batches;
  shape.recompute = settings_.recompute;
  shape.clip = has_gate();
  shape.order = settings_.order;
  shape.host_workers = settings_.host_workers;
  shape.gradient_slots = settings_.overlap == Overlap::kExact ? settings_.gradient_slots : 0;
  shape.is_tied = model_.shape().is_tied;
  if (shape_.num_blocks() > 0 && sends_needed_rows_first()) shape.needed_share = kNeededShare;
  return shape;
}

const graph::StepGraph& Offload::graph_of(int32_t micro_batches) {
  const auto key = std::pair(micro_batches, has_gate());
  const auto found = graphs_.find(key);
  if (found != graphs_.end()) return found->second;
  const graph::StepShape shape = shape_of(micro_batches);
  return graphs_[key] = settings_.overlap == Overlap::kNone ? graph::no_overlap_step(shape)
                                                            : graph::exact_overlap_step(shape, num_device_blocks_);
}

StepResult Offload::step(const StepInput& input) {
  StepResult result;
  for (const model::Batch& batch : input.micro_batches) result.trained_tokens += batch.num_trained_tokens();
  if (result.trained_tokens == 0) return result;
  const graph::StepGraph& graph = graph_of(static_cast<int32_t>(input.micro_batches.size()));
  require_promised_rows(input);
  const OptimizerSettings& optimizer = settings_.optimizer;
  const float lagged = last_norm_ < 0 ? 1.0F : optim::clip_factor(last_norm_ * last_norm_, optimizer.clip);
  lanes_->update_of(num_steps_) = {{.learning_rate = input.learning_rate,
                                    .beta1 = optimizer.beta1,
                                    .beta2 = optimizer.beta2,
                                    .epsilon = optimizer.epsilon,
                                    .weight_decay = optimizer.weight_decay,
                                    .step = num_updates_ + 1},
                                   std::vector<float>(squared_norms_.size(), lagged),
                                   embedding_pieces(input)};
  compute_->begin_step(input.micro_batches, static_cast<float>(1.0 / static_cast<double>(result.trained_tokens)),
                       result);
  result_ = &result;
  std::fill(squared_norms_.begin(), squared_norms_.end(), 0.0);
  const double stalled_s = executor_->stall_s();
  try {
    executor_->run_step(graph);
  } catch (const NonFinite&) {
    throw_non_finite(input);
  }
  result.stall_s = executor_->stall_s() - stalled_s;
  result.gradient_norm = gradient_norm();
  result.clip_factor = lanes_->update_of(num_steps_).clip_factor.front();
  ++num_steps_;
  if (!result.skipped.empty()) return result;
  last_norm_ = result.gradient_norm;
  ++num_updates_;
  choose_device_share(result);
  return result;
}

// After the second step, when nothing is touched for the first time any more: the closed forms of graph/regimes.h.
void Offload::choose_device_share(const StepResult& result) {
  const int64_t steps = num_updates_ - num_restored_;
  if (settings_.num_device_blocks != kAutoShare || steps > 2) return;
  finish_updates();
  const double host_s = lanes_->take_busy_s() / settings_.host_workers;
  if (steps < 2) return;
  const double hidden_s = result.forward_s + (has_gate() ? 0 : result.backward_s);
  const double share = graph::device_share_without_stall({.forward_s = hidden_s, .host_update_s = host_s});
  int64_t numel = 0, left = device_budget_->limit() - device_budget_->in_use() - taken_by_compute(arena_);
  if (device_budget_->limit() == 0) left = std::numeric_limits<int64_t>::max();
  int32_t blocks = 0;
  for (const int32_t all = shape_.num_blocks(); blocks < all; ++blocks) {
    const bool is_enough = static_cast<double>(numel) >= share * static_cast<double>(trained_.state_numel);
    if (is_enough || lanes_->storage().bytes_to_move(static_cast<size_t>(blocks) + 1, trained_) > left) break;
    numel += trained_.groups[static_cast<size_t>(blocks)].state_numel;
  }
  copy_gate_->pass_all();
  lanes_->storage().move_to_device(lanes_->device(), static_cast<size_t>(blocks), trained_, num_updates_);
  hold_gpu_to(lanes_->device(), *device_budget_);
  num_device_blocks_ = blocks;
  start_lanes();
}

double Offload::gradient_norm() const { return norm_of_parts(squared_norms_); }

void Offload::throw_non_finite(const StepInput& input) {
  const StepNumbers numbers{input.step, result_->loss(), gradient_norm()};
  throw non_finite_error(model_, lanes_->storage().blocks(), squared_norms_, input.micro_batches, numbers,
                         clips_by_global_norm());
}

void Offload::finish_updates() { executor_->drain(); }

void Offload::run_compute(const graph::Task& task) {
  if (task.kind == TaskKind::kReduce) return reduce();
  if (task.kind == TaskKind::kDeviceUpdate) return update_on_device(static_cast<size_t>(task.block));
  compute_->run(task);
  if (compute_->completes_gradient(task)) complete_gradient(static_cast<size_t>(task.block));
}

// Norms are summed while backward goes on. Without a gate a gradient must be known to be sound before its update.
void Offload::complete_gradient(size_t block) {
  squared_norms_[block] = optim::squared_norm(trained_.groups[block], lanes_->storage().blocks()[block].gradients);
  if (!settings_.optimizer.skips_non_finite) {
    if (block + 1 == squared_norms_.size() && !std::isfinite(result_->loss_sum)) throw NonFinite();
    if (!std::isfinite(squared_norms_[block])) throw NonFinite();
  }
  if (settings_.clip_scope != ClipScope::kBlock) return;
  lanes_->update_of(num_steps_).clip_factor[block] =
      optim::clip_factor(squared_norms_[block], settings_.optimizer.clip);
}

// The gate: what updates wait for.
void Offload::reduce() {
  StepUpdate& update = lanes_->update_of(num_steps_);
  if (settings_.optimizer.skips_non_finite && !is_finite(result_->loss_sum, squared_norms_)) {
    update.is_skipped = true;
    result_->skipped = skipped_text(model_, result_->loss(), squared_norms_);
    return;
  }
  if (!clips_by_global_norm()) return;
  const double norm = gradient_norm();
  const float factor = optim::clip_factor(norm * norm, settings_.optimizer.clip);
  std::fill(update.clip_factor.begin(), update.clip_factor.end(), factor);
}

void Offload::update_on_device(size_t block) {
  const auto begin = std::chrono::steady_clock::now();
  const StepUpdate& update = lanes_->update_of(num_steps_);
  if (update.is_skipped) return;
  copy_gate_->pass(block);
  kernel::AdamWStep step = update.adamw;
  step.gradient_scale = update.clip_factor[block];
  at::Tensor weights = lanes_->storage().blocks()[block].weights;
  optim::adamw_step(trained_.groups[block], weights, lanes_->storage().blocks()[block].gradients,
                    lanes_->storage().device_state(block), step);
  lanes_->device().finish_compute();
  result_->update_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Only of a tied embedding: the head of the next step then waits for all of it, so that no update outlives that step.
bool Offload::sends_needed_rows_first() const {
  return settings_.sends_needed_rows_first && settings_.overlap == Overlap::kExact && num_device_blocks_ == 0 &&
         model_.shape().is_tied && shape_.blocks.front().num_pieces > 1;
}

// Without knowledge of the next step every row is needed.
Pieces Offload::embedding_pieces(const StepInput& input) {
  has_promised_rows_ = sends_needed_rows_first();
  if (!has_promised_rows_) return {};
  const model::ParameterSpec& table = *model_.blocks().front().find(model::Role::kTokenEmbedding);
  const RowTable rows{table.offset, model_.shape().vocab_size, table.numel / model_.shape().vocab_size};
  promised_rows_ = input.next_micro_batches.empty() ? all_rows(rows.rows) : rows_of(input.next_micro_batches);
  return needed_first_pieces(model_.blocks().front().numel, rows, promised_rows_, shape_.blocks.front().num_pieces);
}

// A step that was not the promised one may need rows that are still on their way.
void Offload::require_promised_rows(const StepInput& input) {
  if (!has_promised_rows_) return;
  const std::vector<int64_t> rows = rows_of(input.micro_batches);
  if (!std::includes(promised_rows_.begin(), promised_rows_.end(), rows.begin(), rows.end())) finish_updates();
}

}  // namespace headrace::policy
