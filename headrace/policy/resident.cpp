#include "headrace/policy/resident.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/optim/clip.h"
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

Resident::Resident(const model::Model& model, std::vector<at::Tensor> weights, Settings settings)
    : model_(model), settings_(std::move(settings)), arena_(memory::make_host_arena()) {
  if (weights.size() != model.blocks().size()) {
    throw InternalError("policy.resident", std::to_string(weights.size()) + " weight buffers for " +
                                               std::to_string(model.blocks().size()) + " blocks.");
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    std::vector<optim::ParameterRange> ranges;
    for (const model::ParameterSpec& parameter : model.blocks()[i].parameters) {
      const bool is_frozen = settings_.is_frozen && settings_.is_frozen(parameter.name);
      ranges.push_back({parameter.offset, parameter.numel, parameter.decays, is_frozen});
      if (!is_frozen) trained_parameters_.push_back(parameter.name);
    }
    groups_.push_back(optim::group_parameters(ranges));
    states_.push_back(optim::make_adamw_state(groups_.back()));
    blocks_.push_back({weights[i], at::zeros_like(weights[i])});
  }
}

StepResult Resident::step(const StepInput& input) {
  StepResult result;
  for (const model::Batch& batch : input.micro_batches) result.trained_tokens += batch.num_trained_tokens();
  if (result.trained_tokens == 0) return result;
  for (model::BlockBuffers& block : blocks_) block.gradients.zero_();
  const auto grad_scale = static_cast<float>(1.0 / static_cast<double>(result.trained_tokens));
  for (const model::Batch& batch : input.micro_batches) accumulate(batch, grad_scale, result);

  Clock::time_point mark = Clock::now();
  result.gradient_norm = gradient_norm();
  if (!std::isfinite(result.loss_sum) || !std::isfinite(result.gradient_norm)) {
    throw RunError("policy.step",
                   "step " + std::to_string(input.step + 1) + ": loss " + std::to_string(result.loss()) +
                       " and gradient norm " + std::to_string(result.gradient_norm) +
                       " are not both finite; first at " + locate_non_finite(model_, blocks_, input.micro_batches) +
                       ". Nothing was updated. Lower --lr, clip (--clip 1) or look at that step's data.");
  }
  result.clip_factor = optim::clip_factor(result.gradient_norm * result.gradient_norm, settings_.optimizer.clip);
  update(input.learning_rate, result.clip_factor);
  result.update_s = seconds_since(mark);
  return result;
}

void Resident::accumulate(const model::Batch& batch, float grad_scale, StepResult& result) {
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
  result.forward_s += seconds_since(mark);
  at::Tensor gradient = std::move(loss.grad_x_NC);
  for (size_t i = tapes.size(); i-- > 0;) {
    gradient = model::backward_block(model_, blocks_[i], std::move(tapes[i]), gradient, batch);
  }
  result.backward_s += seconds_since(mark);
}

double Resident::gradient_norm() const {
  double squared = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) squared += optim::squared_norm(groups_[i], blocks_[i].gradients);
  return std::sqrt(squared);
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
    optim::adamw_step(groups_[i], blocks_[i].weights, blocks_[i].gradients, states_[i], step);
  }
}

std::vector<at::Tensor> Resident::weights() const {
  std::vector<at::Tensor> result;
  for (const model::BlockBuffers& block : blocks_) result.push_back(block.weights);
  return result;
}

int64_t Resident::state_numel() const {
  int64_t total = 0;
  for (const optim::ParameterGroups& groups : groups_) total += groups.state_numel;
  return total;
}

}  // namespace headrace::policy
