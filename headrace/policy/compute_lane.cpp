#include "headrace/policy/compute_lane.h"

#include <chrono>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/policy/device_tensor.h"
#include "headrace/tensor/arena_scope.h"

namespace headrace::policy {

ComputeLane::ComputeLane(const model::Model& model, device::Device& device,
                         const std::vector<model::BlockBuffers>& blocks, bool recompute,
                         std::shared_ptr<memory::Arena> arena)
    : model_(model), device_(device), blocks_(blocks), recompute_(recompute), arena_(std::move(arena)) {}

void ComputeLane::begin_step(std::span<const model::Batch> batches, float grad_scale, StepResult& result) {
  micros_.clear();  // a broken step may have left tapes
  batches_.clear();
  for (const model::Batch& batch : batches) batches_.push_back(model::to_device(batch, torch_device(device_)));
  grad_scale_ = grad_scale;
  result_ = &result;
  micros_.resize(batches.size());
  for (MicroBatch& micro : micros_) micro.tapes.resize(blocks_.size());
  has_gradient_.assign(blocks_.size(), false);
}

bool ComputeLane::completes_gradient(const graph::Task& task) const {
  return task.kind == graph::TaskKind::kBackward && static_cast<size_t>(task.micro_batch) + 1 == batches_.size();
}

void ComputeLane::run(const graph::Task& task) {
  const auto begin = std::chrono::steady_clock::now();
  double* seconds = perform(task);
  device_.finish_compute();
  *seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double* ComputeLane::perform(const graph::Task& task) {
  const auto block = static_cast<size_t>(task.block), micro = static_cast<size_t>(task.micro_batch);
  const bool is_head = task.block == model_.head_index();
  switch (task.kind) {
    case graph::TaskKind::kForward:
      if (!is_head) forward(block, micro);
      return &result_->forward_s;
    case graph::TaskKind::kRecompute: {
      const tensor::ArenaScope scope(arena_, memory::Kind::kActivation);
      if (!is_head) model::recompute_block(model_, blocks_[block], micros_[micro].tapes[block], batches_[micro]);
      return &result_->backward_s;
    }
    case graph::TaskKind::kBackward:
      is_head ? loss(micro) : backward(block, micro);
      return &result_->backward_s;
    default:
      throw InternalError("policy.compute", graph::name_of(task) + " is no forward or backward.");
  }
}

void ComputeLane::forward(size_t block, size_t micro) {
  const tensor::ArenaScope scope(arena_, memory::Kind::kActivation);
  MicroBatch& state = micros_[micro];
  const model::Keep keep = recompute_ ? model::Keep::kInput : model::Keep::kAll;
  state.tapes[block] =
      model::forward_block(model_, static_cast<int64_t>(block), blocks_[block], state.stream, batches_[micro], keep);
  state.stream = std::exchange(state.tapes[block].output_NC, at::Tensor());
}

void ComputeLane::loss(size_t micro) {
  const tensor::ArenaScope scope(arena_, memory::Kind::kWorkspace);
  MicroBatch& state = micros_[micro];
  begin_gradient(blocks_.size() - 1);
  if (model_.shape().is_tied) begin_gradient(0);
  model::LossResult loss =
      model::loss_forward_backward(model_, blocks_.back(), blocks_.front(), state.stream, batches_[micro], grad_scale_);
  result_->loss_sum += loss.loss_sum;
  state.stream = std::move(loss.grad_x_NC);
}

void ComputeLane::backward(size_t block, size_t micro) {
  const tensor::ArenaScope scope(arena_, memory::Kind::kWorkspace);
  MicroBatch& state = micros_[micro];
  begin_gradient(block);
  state.stream =
      model::backward_block(model_, blocks_[block], std::move(state.tapes[block]), state.stream, batches_[micro]);
}

void ComputeLane::begin_gradient(size_t block) {
  if (has_gradient_[block]) return;
  has_gradient_[block] = true;
  at::Tensor gradients = blocks_[block].gradients;
  gradients.zero_();
}

}  // namespace headrace::policy
