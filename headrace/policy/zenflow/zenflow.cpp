#include "headrace/policy/zenflow/zenflow.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/optim/adamw.h"
#include "headrace/optim/clip.h"
#include "headrace/policy/lane_threads.h"
#include "headrace/policy/non_finite.h"
#include "headrace/policy/zenflow/deferred_update.h"

namespace headrace::policy {
namespace {

using graph::LaneKind;
using graph::TaskKind;
using zenflow::BlockColumns;

constexpr int64_t kFloat = 4;  // [bytes]

// Ends a step inside a task; step() says where it comes from.
struct NonFinite {};

std::vector<bool> frozen_parameters(const model::BlockSpec& block,
                                    const std::function<bool(std::string_view name)>& is_frozen) {
  std::vector<bool> frozen;
  for (const model::ParameterSpec& parameter : block.parameters) {
    frozen.push_back(is_frozen && is_frozen(parameter.name));
  }
  return frozen;
}

std::vector<BlockColumns> make_columns(const model::Model& model, const ZenFlowSettings& settings) {
  std::vector<BlockColumns> columns;
  for (size_t i = 0; i < model.blocks().size(); ++i) {
    const model::BlockSpec& block = model.blocks()[i];
    const double share = static_cast<int32_t>(i) < settings.num_device_blocks ? 1 : settings.topk_ratio;
    const int64_t piece = std::max<int64_t>(1, settings.piece_bytes / kFloat);
    columns.push_back(zenflow::make_block_columns(block, frozen_parameters(block, settings.is_frozen), share, piece));
  }
  return columns;
}

void require(bool holds, const std::string& text) {
  if (!holds) throw ConfigError("policy.zenflow", text);
}

}  // namespace

ZenFlow::ZenFlow(const model::Model& model, std::unique_ptr<device::Device> device,
                 const std::vector<at::Tensor>& weights, ZenFlowSettings settings)
    : model_(model),
      settings_(std::move(settings)),
      trained_(find_trained_blocks(model, settings_.is_frozen)),
      device_budget_(std::make_shared<memory::Budget>("device", settings_.device_budget, "--device-budget")),
      host_budget_(std::make_shared<memory::Budget>("host", settings_.host_budget, "--host-budget")),
      schedule_(settings_.schedule, static_cast<int32_t>(model.num_blocks())),
      staleness_(2 * longest_interval()),
      copy_gate_(std::make_shared<CopyGate>(model.blocks().size())) {
  validate();
  const double worker_bytes_per_s = settings_.host_bytes_per_s / settings_.host_workers;
  lanes_ = std::make_shared<zenflow::Lanes>(
      std::move(device), make_columns(model, settings_), storage_settings(),
      std::vector(static_cast<size_t>(settings_.host_workers), device::Pace({.bytes_per_s = worker_bytes_per_s})));
  lanes_->make_storage(weights, device_budget_, host_budget_);
  device::Device& opened = lanes_->device();
  selective_ = opened.kind() == device::Kind::kCuda ? zenflow::make_gpu_selective_update(opened, columns())
                                                    : zenflow::make_host_selective_update();
  arena_ = make_device_arena(opened, device_budget_);
  compute_.emplace(model_, opened, lanes_->storage().blocks(), settings_.recompute, arena_);
  for (const BlockColumns& block : columns()) {
    BlockState& state = states_.emplace_back(
        zenflow::GradientLedger(settings_.window_sum, static_cast<int32_t>(2 * longest_interval())));
    for (const zenflow::MatrixColumns& matrix : block.matrices) state.scores.emplace_back(matrix.shape.num_channels());
  }
  squared_norms_.assign(states_.size(), 0);
  const graph::ExecutorSettings threads =
      lane_settings(lanes_->device().cores(), settings_.host_workers, settings_.deadline_s, settings_.recorded_steps);
  // The lanes' own work does not refer to this object: it may be gone when a lane that hung wakes.
  executor_.emplace(threads, [this, lanes = lanes_](const graph::Task& task, int32_t lane_index) {
    if (task.lane == LaneKind::kCompute) return run_compute(task);
    lanes->run(task, lane_index);
  });
}

ZenFlow::~ZenFlow() = default;

ZenFlow::Sizes ZenFlow::sizes_of(const model::Model& model, const ZenFlowSettings& settings) {
  const zenflow::StorageSettings storage;
  Sizes sizes;
  sizes.num_ring_buffers = storage.send_slots + storage.staging_slots;
  for (const BlockColumns& block : make_columns(model, settings)) {
    sizes.important += block.important_numel;
    sizes.deferred += block.deferred_numel;
    sizes.ring_buffer = std::max(sizes.ring_buffer, zenflow::largest_in_ring(block));
    sizes.exchange += zenflow::exchange_room(block) / 3;
  }
  return sizes;
}

int64_t ZenFlow::longest_interval() const {
  const int64_t set = settings_.schedule.update_interval;
  return settings_.auto_interval ? std::max(set, settings_.limits.largest) : set;
}

void ZenFlow::validate() const {
  const auto blocks = static_cast<int32_t>(model_.num_blocks());
  require(settings_.topk_ratio > 0 && settings_.topk_ratio <= 1,
          "a top-k ratio of " + std::to_string(settings_.topk_ratio) + ": a share above 0, at most 1, is important.");
  require(settings_.select_margin >= 1,
          "a selection margin of " + std::to_string(settings_.select_margin) + ", below 1: columns would flutter.");
  require(settings_.num_device_blocks >= 0 && settings_.num_device_blocks <= blocks,
          std::to_string(settings_.num_device_blocks) + " blocks on the device of " + std::to_string(blocks) + ".");
  require(settings_.host_workers >= 1 && settings_.piece_bytes > 0,
          std::to_string(settings_.host_workers) + " host workers and pieces of " +
              std::to_string(settings_.piece_bytes) + " bytes: both must be above 0.");
  const zenflow::IntervalLimits& limits = settings_.limits;
  require(!settings_.auto_interval || (limits.smallest >= 1 && limits.largest >= limits.smallest),
          "an update interval between " + std::to_string(limits.smallest) + " and " + std::to_string(limits.largest) +
              " steps.");
}

zenflow::StorageSettings ZenFlow::storage_settings() const {
  zenflow::StorageSettings storage;
  const bool has_slots = settings_.window_sum == zenflow::WindowSum::kSlots;
  storage.num_gradients = has_slots ? static_cast<int32_t>(2 * longest_interval()) : 2;
  storage.has_arrival = !has_slots;
  storage.shares_gradient = settings_.shares_gradient;
  storage.is_tied = model_.shape().is_tied;
  return storage;
}

StepResult ZenFlow::step(const StepInput& input) {
  StepResult result;
  for (const model::Batch& batch : input.micro_batches) result.trained_tokens += batch.num_trained_tokens();
  if (result.trained_tokens == 0) return result;
  block_steps_ = schedule_.next();
  const graph::ZenflowShape shape = plan_step(input.learning_rate, static_cast<int32_t>(input.micro_batches.size()));
  const graph::StepGraph graph = graph::zenflow_step(shape);
  compute_->begin_step(input.micro_batches, static_cast<float>(1.0 / static_cast<double>(result.trained_tokens)),
                       result);
  result_ = &result;
  learning_rate_ = input.learning_rate;
  std::fill(squared_norms_.begin(), squared_norms_.end(), 0.0);
  const double stalled_s = executor_->stall_s();
  try {
    run_planned(graph);
  } catch (const NonFinite&) {
    const StepNumbers numbers{input.step, result.loss(), norm_of_parts(squared_norms_)};
    throw non_finite_error(model_, blocks_of_device(), squared_norms_, input.micro_batches, numbers, true);
  }
  result.stall_s = executor_->stall_s() - stalled_s;
  end_step();
  ++num_updates_;
  follow_host(result);
  return result;
}

void ZenFlow::run_planned(const graph::StepGraph& graph) {
  lanes_->add_plan(plan_);
  is_drained_ = false;
  ++num_steps_;
  executor_->run_step(graph);
}

void ZenFlow::run_compute(const graph::Task& task) {
  if (task.block == graph::kWholeModel) return reduce();
  const auto block = static_cast<size_t>(task.block), piece = static_cast<size_t>(std::max(0, task.piece));
  const zenflow::BlockPlan& plan = plan_->blocks[block];
  const bool changes_state =
      task.kind == TaskKind::kDeviceUpdate || task.kind == TaskKind::kMerge || task.kind == TaskKind::kAdopt;
  if (changes_state) copy_gate_->pass(block);
  switch (task.kind) {
    case TaskKind::kReduce:
      split(block, piece, task.slot);
      break;
    case TaskKind::kDeviceUpdate:
      return update_on_device(block);
    case TaskKind::kMerge:
      selective_->merge_piece(device_block(block), piece, lanes_->storage().staging_slot(task.slot));
      break;
    case TaskKind::kRelease:
      selective_->release_columns(device_block(block), piece, plan.update->swaps,
                                  lanes_->storage().send_slot(task.slot));
      break;
    case TaskKind::kAdopt:
      selective_->adopt_columns(device_block(block), piece, plan.adopted, lanes_->storage().staging_slot(task.slot));
      break;
    default:
      return compute_->run(task);
  }
  lanes_->device().finish_compute();
}

zenflow::DeviceBlock ZenFlow::device_block(size_t block) {
  return {block, lanes_->columns()[block], lanes_->storage().blocks()[block], lanes_->storage().important(block)};
}

// The norm is that of the resident policy, bit for bit; a gradient must be known to be sound before anything uses it.
void ZenFlow::split(size_t block, size_t piece, int32_t slot) {
  if (piece == 0) {
    squared_norms_[block] = optim::squared_norm(trained_.groups[block], lanes_->storage().blocks()[block].gradients);
    const bool is_sound = std::isfinite(result_->loss_sum) && std::isfinite(squared_norms_[block]);
    if (!is_sound && !settings_.optimizer.skips_non_finite) {
      executor_->wait_for_release();  // the end of the run would leave a copy of the step before without its updates
      throw NonFinite();
    }
    selective_->split_undeferred(device_block(block), states_[block].scores);
  }
  if (columns()[block].pieces.empty()) return;
  selective_->split_piece(device_block(block), piece, lanes_->storage().send_slot(slot), states_[block].scores);
}

// The whole gradient is there and sound: what the host waits for to touch its state.
void ZenFlow::reduce() {
  result_->gradient_norm = norm_of_parts(squared_norms_);
  take_scores();
  if (settings_.optimizer.skips_non_finite && !is_finite(result_->loss_sum, squared_norms_)) return skip_step();
  const double norm = result_->gradient_norm;
  result_->clip_factor = optim::clip_factor(norm * norm, settings_.optimizer.clip);
  for (size_t block = 0; block < states_.size(); ++block) {
    BlockState& state = states_[block];
    for (zenflow::ColumnScore& score : state.scores) score.end_step();
    if (columns()[block].pieces.empty()) continue;
    zenflow::BlockPlan& plan = plan_->blocks[block];
    plan.scale = state.ledger.scale(result_->clip_factor, result_->trained_tokens);
    state.ledger.enter(result_->clip_factor, result_->trained_tokens);
    if (!plan.update) continue;
    plan.update->parts = state.ledger.end_window();
    if (block_steps_[block].selects) plan.update->swaps = select(block);
  }
}

void ZenFlow::take_scores() {
  std::vector<zenflow::SelectiveUpdate::Scores*> scores;
  for (BlockState& state : states_) scores.push_back(&state.scores);
  selective_->take_scores(scores);
}

// Windows go on without this step: one that ends with it has the mean of its other steps, or nothing to do.
void ZenFlow::skip_step() {
  result_->skipped = skipped_text(model_, result_->loss(), squared_norms_);
  plan_->is_skipped = true;
  for (size_t block = 0; block < states_.size(); ++block) {
    BlockState& state = states_[block];
    for (zenflow::ColumnScore& score : state.scores) score.skip_step();
    if (columns()[block].pieces.empty()) continue;
    state.window_rates.pop_back();
    std::optional<zenflow::WindowUpdate>& update = plan_->blocks[block].update;
    if (!update) continue;
    if (!state.window_rates.empty()) update = plan_update(block);
    update->parts = state.ledger.end_window();
    if (block_steps_[block].selects && !state.window_rates.empty()) update->swaps = select(block);
  }
}

// By matrix; empty when every column stays.
std::vector<std::vector<zenflow::Swap>> ZenFlow::select(size_t block) {
  std::vector<std::vector<zenflow::Swap>> swaps;
  int64_t count = 0, important = 0;
  const BlockColumns& of_block = columns()[block];
  for (size_t i = 0; i < of_block.matrices.size(); ++i) {
    const zenflow::MatrixColumns& matrix = of_block.matrices[i];
    swaps.push_back(zenflow::reselect(states_[block].scores[i].smoothed(), matrix.important, matrix.deferred,
                                      settings_.select_margin));
    count += static_cast<int64_t>(swaps.back().size());
    important += static_cast<int64_t>(matrix.important.size());
  }
  states_[block].churn = important > 0 ? static_cast<double>(count) / static_cast<double>(important) : 0;
  if (count == 0) swaps.clear();
  return swaps;
}

void ZenFlow::update_on_device(size_t block) {
  if (plan_->is_skipped) return;
  const auto begin = std::chrono::steady_clock::now();
  selective_->update_important(device_block(block), settings_.optimizer, learning_rate_, result_->clip_factor);
  lanes_->device().finish_compute();
  result_->update_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// S as long as the host needs, from what it took since S was last considered.
void ZenFlow::follow_host(const StepResult& result) {
  if (!settings_.auto_interval) return;
  device_busy_s_ += result.forward_s + result.backward_s + result.update_s;
  const int64_t interval = schedule_.update_interval();
  const bool is_warm = num_updates_ > settings_.schedule.warmup_steps;
  if (is_warm && ++steps_considered_ < interval) return;
  const double host_s = lanes_->busy_s() - std::exchange(host_busy_s_, lanes_->busy_s());
  const double device_s = std::exchange(device_busy_s_, 0.0);
  const auto steps = static_cast<double>(std::exchange(steps_considered_, 0));
  if (!is_warm || device_s <= 0) return;
  const double window_s = host_s / settings_.host_workers * static_cast<double>(interval) / steps;
  schedule_.set_update_interval(zenflow::choose_interval(window_s, device_s / steps, interval, settings_.limits));
}

}  // namespace headrace::policy
