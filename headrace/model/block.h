// Forward and backward of one block as a pure function of (flat buffer, input), so that blocks can be placed, moved and
// recomputed one by one. No global state; one thread per call; the caller sets grad mode and thread counts (neither
// matters to the result but for the order of sums inside libtorch's own products). Legend: N tokens of the batch, C
// hidden size, V vocabulary.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "headrace/model/batch.h"
#include "headrace/model/model.h"

namespace headrace::model {

// A block's parameters. Both flat, [blocks()[i].numel], same dtype, contiguous.
struct BlockBuffers {
  at::Tensor weights;
  at::Tensor gradients;  // backward adds into it, never replaces; undefined for inference
};

// What a forward leaves behind for its backward.
enum class Keep {
  kNothing,  // inference: no backward is possible
  kInput,    // activation checkpointing: backward runs the forward again; bitwise equal to kAll
  kAll,
};

struct SavedTensors;  // of one block; block.cpp

// Output of one block and what its backward needs. Holds activations only, never weights: the weights may leave the
// device between forward and backward and come back elsewhere.
struct BlockTape {
  BlockTape();
  BlockTape(BlockTape&&) noexcept;
  BlockTape& operator=(BlockTape&&) noexcept;
  ~BlockTape();

  at::Tensor output_NC;
  at::Tensor input_NC;  // kept for kInput and kAll; undefined for block 0
  int64_t index = 0;
  Keep keep = Keep::kNothing;
  std::unique_ptr<SavedTensors> saved;  // kAll only
};

// Blocks 0 (input ignored: may be undefined) to L. Never keeps the batch.
BlockTape forward_block(const Model& model, int64_t index, const BlockBuffers& buffers, const at::Tensor& input_NC,
                        const Batch& batch, Keep keep);

// Adds the block's parameter gradients into buffers.gradients (nothing where undefined: a frozen block) and returns the
// gradient of its input (undefined for block 0). Consumes the tape, whose output may have been dropped already.
// The batch is that of the forward, the weights equal those of the forward wherever they lie. Throws InternalError for
// a tape kept with kNothing.
at::Tensor backward_block(const Model& model, const BlockBuffers& buffers, BlockTape&& tape,
                          const at::Tensor& grad_output_NC, const Batch& batch);

// Runs the forward of a tape kept with kInput again: the tape is then as if kept with kAll. backward_block does so by
// itself; this is for whoever counts its time apart. Nothing to do for a tape kept with kAll or of block 0.
void recompute_block(const Model& model, const BlockBuffers& buffers, BlockTape& tape, const Batch& batch);

struct LossResult {
  double loss_sum = 0.0;  // [nats] over the trained tokens, unscaled
  int64_t trained_tokens = 0;
  at::Tensor grad_x_NC;  // gradient of loss_sum * grad_scale; undefined after loss()
};

// Block L+1. Gradients of loss_sum * grad_scale are added into head.gradients and, when tied, embedding.gradients.
// `embedding` is read only when the head is tied. Rows with a masked target cost nothing; when all are masked the
// result is 0 with zero gradients.
LossResult loss_forward_backward(const Model& model, const BlockBuffers& head, const BlockBuffers& embedding,
                                 const at::Tensor& x_NC, const Batch& batch, float grad_scale);

// The same without gradients, for evaluation.
LossResult loss(const Model& model, const BlockBuffers& head, const BlockBuffers& embedding, const at::Tensor& x_NC,
                const Batch& batch);

// [R, V] fp32 of the chosen rows of x (int64 [R]); all rows when `rows` is undefined.
at::Tensor logits(const Model& model, const BlockBuffers& head, const BlockBuffers& embedding, const at::Tensor& x_NC,
                  const at::Tensor& rows = {});

}  // namespace headrace::model
