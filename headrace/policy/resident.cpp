#include "headrace/policy/resident.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/device/cpu.h"
#include "headrace/optim/clip.h"
#include "headrace/policy/device_tensor.h"
#include "headrace/policy/non_finite.h"
#include "headrace/tensor/arena_scope.h"

namespace headrace::policy {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point& mark) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - mark).count();
  mark = now;
  return seconds;
}

}  // namespace

Resident::Resident(const model::Model& model, std::vector<at::Tensor> weights, Settings settings,
                   std::unique_ptr<device::Device> device)
    : model_(model),
      settings_(std::move(settings)),
      device_(device ? std::move(device) : device::make_cpu_device()),
      trained_(find_trained_blocks(model, settings_.is_frozen)),
      copy_gate_(std::make_shared<CopyGate>(model.blocks().size())),
      arena_(device_->shares_host_memory() ? memory::make_host_arena() : nullptr) {
  if (weights.size() != model.blocks().size()) {
    throw InternalError("policy.resident", std::to_string(weights.size()) + " weight buffers for " +
                                               std::to_string(model.blocks().size()) + " blocks.");
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    states_.push_back(optim::make_adamw_state(trained_.groups[i], torch_device(*device_)));
    const at::Tensor on_device = weights[i].to(torch_device(*device_));
    blocks_.push_back({on_device, at::zeros_like(on_device)});
    weights[i].reset();
  }
}

StepResult Resident::step(const StepInput& input) {
  StepResult result;
  for (const model::Batch& batch : input.micro_batches) result.trained_tokens += batch.num_trained_tokens();
  if (result.trained_tokens == 0) return result;
  for (model::BlockBuffers& block : blocks_) block.gradients.zero_();
  const auto grad_scale = static_cast<float>(1.0 / static_cast<double>(result.trained_tokens));
  std::vector<model::Batch> batches;
  for (const model::Batch& batch : input.micro_batches) {
    batches.push_back(model::to_device(batch, torch_device(*device_)));
  }
  std::vector<at::Tensor> embedding_gradients;
  for (const model::Batch& batch : batches) embedding_gradients.push_back(accumulate(batch, grad_scale, result));
  Clock::time_point mark = Clock::now();
  accumulate_embedding(batches, std::move(embedding_gradients));
  device_->finish_compute();
  result.backward_s += seconds_since(mark);

  const std::vector<double> squared = squared_norms();
  result.gradient_norm = norm_of_parts(squared);
  if (!is_finite(result.loss_sum, squared)) {
    if (settings_.optimizer.skips_non_finite) {
      result.skipped = skipped_text(model_, result.loss(), squared);
      return result;
    }
    throw RunError("policy.step", non_finite_text({input.step, result.loss(), result.gradient_norm},
                                                  locate_non_finite(model_, blocks_, input.micro_batches),
                                                  /*is_untouched=*/true));
  }
  result.clip_factor = optim::clip_factor(result.gradient_norm * result.gradient_norm, settings_.optimizer.clip);
  update(input.learning_rate, result.clip_factor);
  device_->finish_compute();
  result.update_s = seconds_since(mark);
  return result;
}

at::Tensor Resident::accumulate(const model::Batch& batch, float grad_scale, StepResult& result) {
  const tensor::ArenaScope scope(arena_, memory::Kind::kActivation);
  Clock::time_point mark = Clock::now();
  const model::Keep keep = settings_.recompute ? model::Keep::kInput : model::Keep::kAll;
  std::vector<model::BlockTape> tapes;
  at::Tensor x;
  for (int64_t i = 0; i < model_.head_index(); ++i) {
    tapes.push_back(model::forward_block(model_, i, blocks_[static_cast<size_t>(i)], x, batch, keep));
    x = std::exchange(tapes.back().output_NC, at::Tensor());
  }
  model::LossResult loss = model::loss_forward_backward(model_, blocks_.back(), blocks_.front(), x, batch, grad_scale);
  x.reset();
  result.loss_sum += loss.loss_sum;
  device_->finish_compute();
  result.forward_s += seconds_since(mark);
  at::Tensor gradient = std::move(loss.grad_x_NC);
  for (size_t i = tapes.size(); i-- > 1;) {
    gradient = model::backward_block(model_, blocks_[i], std::move(tapes[i]), gradient, batch);
  }
  device_->finish_compute();
  result.backward_s += seconds_since(mark);
  return gradient;
}

// After all micro-batches, so that a tied matrix sums all parts of the head before those of the embedding: in the same
// order whether a policy goes through the micro-batches one by one or through the blocks one by one.
void Resident::accumulate_embedding(std::span<const model::Batch> batches, std::vector<at::Tensor> gradients) {
  for (size_t i = 0; i < batches.size(); ++i) {
    model::BlockTape tape;
    tape.keep = model::Keep::kInput;  // the embedding needs nothing but the batch
    model::backward_block(model_, blocks_.front(), std::move(tape), gradients[i], batches[i]);
  }
}

std::vector<double> Resident::squared_norms() const {
  std::vector<double> squared;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    squared.push_back(optim::squared_norm(trained_.groups[i], blocks_[i].gradients));
  }
  return squared;
}

void Resident::update(double learning_rate, float clip_factor) {
  const OptimizerSettings& optimizer = settings_.optimizer;
  const kernel::AdamWStep step{.learning_rate = learning_rate,
                               .beta1 = optimizer.beta1,
                               .beta2 = optimizer.beta2,
                               .epsilon = optimizer.epsilon,
                               .weight_decay = optimizer.weight_decay,
                               .gradient_scale = clip_factor};
  for (size_t i = 0; i < blocks_.size(); ++i) {
    copy_gate_->pass(i);
    optim::adamw_step(trained_.groups[i], blocks_[i].weights, blocks_[i].gradients, states_[i], step);
  }
}

ExactBlock Resident::exact_block(size_t block) {
  return {model_.blocks()[block],
          trained_.groups[block],
          blocks_[block].weights.data_ptr<float>(),
          states_[block].m.data_ptr<float>(),
          states_[block].v.data_ptr<float>(),
          device_.get()};
}

StateCopy Resident::begin_save() {
  StateCopy copy;
  int64_t updates = 0;
  const std::shared_ptr<CopyGate> gate = CopyGate::close(copy_gate_);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    copy.parts.push_back([gate, i, block = exact_block(i), updates = states_[i].updates](PolicyState& state) {
      save_exact_block(block, updates, state);
      gate->open(i);
    });
    updates = std::max(updates, states_[i].updates);
  }
  copy.gate = copy_gate_;
  copy.facts = {{"kind", "exact"}, {"updates", updates}};
  return copy;
}

void Resident::restore(const StateReader& saved, const RestoreOptions& options) {
  const int64_t updates = restore_exact_updates(model_, saved, options);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    restore_exact_block(exact_block(i), saved);
    states_[i].updates = updates;
  }
}

}  // namespace headrace::policy
