// Tokens from the data room as the model room takes them. Pure; any thread.
#pragma once

#include "headrace/data/batch.h"
#include "headrace/model/batch.h"

namespace headrace::train {

// Copies ids, positions and targets into int64 tensors [N] on the CPU.
model::Batch to_model_batch(const data::MicroBatch& micro_batch);

}  // namespace headrace::train
