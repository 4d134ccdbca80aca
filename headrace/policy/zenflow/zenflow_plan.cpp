// What each task of a step is to do: decided before the step from the schedule, entered into the books after it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "headrace/policy/zenflow/deferred_update.h"
#include "headrace/policy/zenflow/zenflow.h"

namespace headrace::policy {
namespace {

constexpr int64_t kFloat = 4;  // [bytes]

using zenflow::BlockColumns;

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double rate_factor(DeferredRate rate, size_t steps) {
  if (rate == DeferredRate::kPlain) return 1;
  const auto count = static_cast<double>(steps);
  return rate == DeferredRate::kSqrt ? std::sqrt(count) : count;
}

}  // namespace

graph::ZenflowShape ZenFlow::empty_shape(int32_t micro_batches) const {
  graph::ZenflowShape shape;
  shape.step.blocks.resize(states_.size());
  shape.step.accumulate = micro_batches;
  shape.step.recompute = settings_.recompute;
  shape.step.clip = settings_.optimizer.clip > 0 || settings_.optimizer.skips_non_finite;
  shape.step.order = settings_.order;
  shape.step.host_workers = settings_.host_workers;
  shape.step.is_tied = model_.shape().is_tied;
  shape.blocks.resize(states_.size());
  shape.send_slots = lanes_->settings().send_slots;
  shape.staging_slots = lanes_->settings().staging_slots;
  shape.after_drain = is_drained_;
  for (size_t i = 0; i < states_.size(); ++i) {
    const BlockColumns& block = columns()[i];
    const bool has_slots = settings_.window_sum == zenflow::WindowSum::kSlots;
    graph::ZenflowBlock& of_block = shape.blocks[i];
    of_block.num_pieces = static_cast<int32_t>(block.pieces.size());
    of_block.weight_bytes = of_block.gradient_bytes = kFloat * block.deferred_numel;
    if (!has_slots) of_block.accumulate_bytes = block.deferred_numel * zenflow::accumulate_bytes(false);
  }
  return shape;
}

graph::ZenflowShape ZenFlow::plan_step(double learning_rate, int32_t micro_batches) {
  new_plan();
  graph::ZenflowShape shape = empty_shape(micro_batches);
  for (size_t block = 0; block < states_.size(); ++block) {
    if (!columns()[block].pieces.empty()) plan_block(block, learning_rate, shape.blocks[block]);
  }
  return shape;
}

void ZenFlow::new_plan() {
  plan_ = std::make_shared<zenflow::StepPlan>();
  plan_->number = num_steps_;
  plan_->blocks.resize(states_.size());
  int64_t oldest = num_steps_;
  for (const BlockState& state : states_) {
    if (state.first_number >= 0) oldest = std::min(oldest, state.first_number);
    if (state.first_of_update >= 0) oldest = std::min(oldest, state.first_of_update);
  }
  lanes_->drop_plans_before(oldest);
}

void ZenFlow::plan_block(size_t block, double learning_rate, graph::ZenflowBlock& shape) {
  BlockState& state = states_[block];
  const zenflow::BlockStep& step = block_steps_[block];
  zenflow::BlockPlan& plan = plan_->blocks[block];
  plan.arrival = state.ledger.arrival();
  plan_adoption(block, shape);
  if (step.merges_before) plan_merge(block, graph::Merge::kBeforeForward, step.merge_from, shape);
  if (step.merges_after) plan_merge(block, graph::Merge::kAfterBackward, step.merge_from + 1, shape);
  if (state.window_rates.empty()) state.first_number = num_steps_;
  state.window_rates.push_back(learning_rate);
  if (!step.flushes) return;
  plan.update = plan_update(block);
  shape.flushes = true;
  shape.due_steps = step.due_steps;
  shape.migrates = step.selects;
  shape.update_bytes = update_bytes(block);
}

// `age`: steps from the window's last one to the forward that sees its update first.
void ZenFlow::plan_merge(size_t block, graph::Merge merge, int64_t age, graph::ZenflowBlock& shape) {
  BlockState& state = states_[block];
  shape.merge = merge;
  shape.merge_from = num_steps_ - state.updated_by;
  if (state.window_length == 0) return;  // every step of it was skipped
  shape.staleness = staleness_.seen(state.window_length, age, static_cast<double>(columns()[block].deferred_numel));
}

void ZenFlow::plan_adoption(size_t block, graph::ZenflowBlock& shape) {
  BlockState& state = states_[block];
  if (!std::exchange(state.has_adopted, false)) return;
  shape.adopts = true;
  plan_->blocks[block].adopted = std::exchange(state.adopted, {});
}

int64_t ZenFlow::update_bytes(size_t block) const {
  const bool has_slots = settings_.window_sum == zenflow::WindowSum::kSlots;
  const auto parts = has_slots ? static_cast<int64_t>(states_[block].window_rates.size()) : 1;
  return columns()[block].deferred_numel * zenflow::window_update_bytes(parts);
}

// One AdamW update with the window's rate; decay as often as there were steps.
zenflow::WindowUpdate ZenFlow::plan_update(size_t block) const {
  const std::vector<double>& rates = states_[block].window_rates;
  const OptimizerSettings& optimizer = settings_.optimizer;
  double keep = 1;
  for (const double rate : rates) keep *= 1 - rate * optimizer.weight_decay;
  zenflow::WindowUpdate update;
  update.plain = {.learning_rate = mean(rates) * rate_factor(settings_.deferred_rate, rates.size()),
                  .beta1 = optimizer.beta1,
                  .beta2 = optimizer.beta2,
                  .epsilon = optimizer.epsilon,
                  .keep = 1};
  update.decaying = update.plain;
  update.decaying.keep = static_cast<float>(keep);
  for (const zenflow::MatrixColumns& matrix : columns()[block].matrices) {
    std::vector<int64_t> updates;
    for (const int32_t channel : matrix.deferred) updates.push_back(matrix.updates[static_cast<size_t>(channel)] + 1);
    update.corrections.push_back(kernel::bias_corrections(update.plain, updates));
  }
  return update;
}

void ZenFlow::end_step() {
  for (size_t block = 0; block < states_.size(); ++block) {
    if (plan_->blocks[block].update) end_window(block);
  }
}

void ZenFlow::end_window(size_t block) {
  BlockState& state = states_[block];
  BlockColumns& of_block = lanes_->columns()[block];
  const bool is_empty = state.window_rates.empty();  // every step of it was skipped
  const auto num_entered = static_cast<int64_t>(state.window_rates.size());
  state.window_length = is_empty ? 0 : std::max(num_entered, block_steps_[block].position + 1);
  for (zenflow::MatrixColumns& matrix : of_block.matrices) {
    if (is_empty) break;
    for (const int32_t channel : matrix.deferred) ++matrix.updates[static_cast<size_t>(channel)];
  }
  state.window_rates.clear();
  state.updated_by = plan_->number;
  state.first_of_update = std::exchange(state.first_number, -1);
  if (!block_steps_[block].selects) return;
  state.has_adopted = true;  // the graph has the tasks, whether or not a column moves
  state.adopted = plan_->blocks[block].update->swaps;
  for (size_t i = 0; i < state.adopted.size(); ++i) {
    zenflow::MatrixColumns& matrix = of_block.matrices[i];
    for (const zenflow::Swap& swap : state.adopted[i]) {
      std::swap(matrix.important[static_cast<size_t>(swap.important)],
                matrix.deferred[static_cast<size_t>(swap.deferred)]);
    }
  }
}

void ZenFlow::finish_updates() {
  if (is_drained_) return;
  executor_->drain();
  is_drained_ = true;
  settle(/*all=*/false);
}

void ZenFlow::finish_training() {
  executor_->drain();
  is_drained_ = true;
  settle(/*all=*/true);
  end_windows();
}

// What has come, or is due before the next forward, goes into the weights now.
void ZenFlow::settle(bool all) {
  new_plan();
  graph::ZenflowShape shape = empty_shape(1);
  const std::vector<int64_t> ages = schedule_.settle(all);
  bool has_work = false;
  for (size_t block = 0; block < states_.size(); ++block) {
    if (columns()[block].pieces.empty()) continue;
    plan_adoption(block, shape.blocks[block]);
    if (ages[block] > 0) plan_merge(block, graph::Merge::kBeforeForward, ages[block], shape.blocks[block]);
    has_work = has_work || ages[block] > 0 || shape.blocks[block].adopts;
  }
  if (has_work) run_settling(shape);
}

// Windows under way end where they are.
void ZenFlow::end_windows() {
  new_plan();
  graph::ZenflowShape shape = empty_shape(1);
  const std::vector<bool> ends = schedule_.end_windows();
  block_steps_.assign(states_.size(), {});
  for (size_t block = 0; block < states_.size(); ++block) {
    if (columns()[block].pieces.empty() || !ends[block] || states_[block].window_rates.empty()) continue;
    shape.blocks[block].flushes = true;
    shape.blocks[block].update_bytes = update_bytes(block);
    plan_->blocks[block].update = plan_update(block);
    plan_->blocks[block].update->parts = states_[block].ledger.end_window();
    shape.blocks[block].merge = graph::Merge::kBeforeForward;
    const auto length = static_cast<int64_t>(states_[block].window_rates.size());
    shape.blocks[block].staleness = staleness_.seen(length, 1, static_cast<double>(columns()[block].deferred_numel));
  }
  if (std::find(ends.begin(), ends.end(), true) == ends.end()) return;
  run_settling(shape);
  end_step();
}

void ZenFlow::run_settling(const graph::ZenflowShape& shape) {
  run_planned(graph::settling_step(shape));
  executor_->drain();
  is_drained_ = true;
}

}  // namespace headrace::policy
