#include "headrace/model/block.h"

#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/model/bound_block.h"
#include "headrace/model/embedding.h"
#include "headrace/model/layer.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {

struct SavedTensors {
  LayerTape layer;
};

BlockTape::BlockTape() = default;
BlockTape::BlockTape(BlockTape&&) noexcept = default;
BlockTape& BlockTape::operator=(BlockTape&&) noexcept = default;
BlockTape::~BlockTape() = default;

namespace {

void check_index(const Model& model, int64_t index) {
  if (index >= 0 && index < model.head_index()) return;
  throw InternalError("model.forward", "block " + std::to_string(index) + " of " + std::to_string(model.num_blocks()) +
                                           " has no forward of its own; the head is part of the loss.");
}

}  // namespace

BlockTape forward_block(const Model& model, int64_t index, const BlockBuffers& buffers, const at::Tensor& input_NC,
                        const Batch& batch, Keep keep) {
  check_index(model, index);
  const at::NoGradGuard no_grad;
  BlockTape tape;
  tape.index = index;
  tape.keep = keep;
  if (index == 0) {
    tape.output_NC = forward_embedding(model, buffers, batch);
    return tape;
  }
  const BoundBlock block(model.blocks()[index], buffers);
  const Layer layer(model.shape(), index - 1, block);
  LayerTape layer_tape = layer.record(input_NC, batch);
  tape.output_NC = layer.finish(layer_tape);
  if (keep != Keep::kNothing) tape.input_NC = input_NC;
  if (keep == Keep::kAll) tape.saved = std::make_unique<SavedTensors>(SavedTensors{std::move(layer_tape)});
  return tape;
}

void recompute_block(const Model& model, const BlockBuffers& buffers, BlockTape& tape, const Batch& batch) {
  check_index(model, tape.index);
  if (tape.keep == Keep::kAll || tape.index == 0) return;
  if (tape.keep == Keep::kNothing) {
    throw InternalError("model.recompute", "block " + std::to_string(tape.index) + " kept nothing for its backward.");
  }
  const at::NoGradGuard no_grad;
  const BoundBlock block(model.blocks()[tape.index], buffers);
  const Layer layer(model.shape(), tape.index - 1, block);
  tape.saved = std::make_unique<SavedTensors>(SavedTensors{layer.record(tape.input_NC, batch)});
  tape.keep = Keep::kAll;
}

at::Tensor backward_block(const Model& model, const BlockBuffers& buffers, BlockTape&& tape,
                          const at::Tensor& grad_output_NC, const Batch& batch) {
  BlockTape taken = std::move(tape);
  check_index(model, taken.index);
  if (taken.keep == Keep::kNothing) {
    throw InternalError("model.backward", "block " + std::to_string(taken.index) + " kept nothing for its backward.");
  }
  const at::NoGradGuard no_grad;
  taken.output_NC.reset();
  if (taken.index == 0) {
    backward_embedding(model, buffers, grad_output_NC, batch);
    return {};
  }
  recompute_block(model, buffers, taken, batch);
  const BoundBlock block(model.blocks()[taken.index], buffers);
  const Layer layer(model.shape(), taken.index - 1, block);
  return layer.backward(grad_output_NC, taken.input_NC, taken.saved->layer, batch);
}

}  // namespace headrace::model
