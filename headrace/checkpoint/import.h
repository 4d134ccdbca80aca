// Hugging Face tensors into flat block buffers. Blocking; one thread.
#pragma once

#include <torch/types.h>

#include <span>

#include "headrace/model/model.h"

namespace headrace::safetensors {
class ModelFolder;
}

namespace headrace::checkpoint {

// Copies every parameter of `model` from the folder's tensors into the fp32 CPU buffers, one per block in order
// ([blocks()[i].numel]); gaps become zero. Sources may be fp32, fp16 or bf16. Throws one DataError that lists all
// missing, unexpected and mis-shaped tensors. Rotary frequency tables and attention mask buffers that old versions of
// transformers saved are ignored; a tied head that is stored as well must equal the embedding byte for byte.
void import_weights(const safetensors::ModelFolder& folder, const model::Model& model,
                    std::span<at::Tensor> flat_weights);

}  // namespace headrace::checkpoint
