// Block 0: token embedding, plus learned positions where the family has them. Legend: N tokens, C hidden size.
#pragma once

#include "headrace/model/block.h"

namespace headrace::model {

at::Tensor forward_embedding(const Model& model, const BlockBuffers& buffers, const Batch& batch);

// Adds into buffers.gradients; the padding token's row gets nothing, as in torch.nn.Embedding.
void backward_embedding(const Model& model, const BlockBuffers& buffers, const at::Tensor& grad_NC, const Batch& batch);

}  // namespace headrace::model
