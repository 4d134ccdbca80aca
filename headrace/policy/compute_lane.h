// Forward, recomputation and backward of a step, one task at a time: what the compute lane of every policy with a step
// graph does. Keeps tapes and streams between tasks, per micro-batch. The compute lane's thread only.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/graph/task_graph.h"
#include "headrace/memory/arena.h"
#include "headrace/model/block.h"
#include "headrace/policy/step.h"

namespace headrace::policy {

class ComputeLane {
 public:
  // `blocks` are the buffers on the device; they, the model and the device must outlive this object. Activations and
  // workspace come from `arena`; from libtorch's own memory where it is null.
  ComputeLane(const model::Model& model, device::Device& device, const std::vector<model::BlockBuffers>& blocks,
              bool recompute, std::shared_ptr<memory::Arena> arena);

  // Micro-batches in host memory and their weight; result of the losses and times goes to `result`, which must outlive
  // the step.
  void begin_step(std::span<const model::Batch> batches, float grad_scale, StepResult& result);

  // One kForward, kRecompute or kBackward. The gradient buffers of a block are zeroed before the first addition of the
  // step. The loss, forward and backward, is the head's backward. Returns when the device has done it.
  void run(const graph::Task& task);
  // True when the task was the last that adds to its block's gradient.
  bool completes_gradient(const graph::Task& task) const;

 private:
  struct MicroBatch {
    std::vector<model::BlockTape> tapes;  // by block
    at::Tensor stream;                    // forward: output of the last block run; backward: its gradient
  };

  // Queues it; returns where its time counts.
  double* perform(const graph::Task& task);
  void forward(size_t block, size_t micro);
  void backward(size_t block, size_t micro);
  void loss(size_t micro);
  void begin_gradient(size_t block);

  const model::Model& model_;
  device::Device& device_;
  const std::vector<model::BlockBuffers>& blocks_;
  const bool recompute_;
  const std::shared_ptr<memory::Arena> arena_;
  std::vector<model::Batch> batches_;  // on the device
  float grad_scale_ = 1;
  StepResult* result_ = nullptr;
  std::vector<MicroBatch> micros_;
  std::vector<bool> has_gradient_;  // by block: begun in this step
};

}  // namespace headrace::policy
