#include "headrace/train/micro_batch.h"

#include <span>

namespace headrace::train {
namespace {

at::Tensor to_tensor(std::span<const int32_t> values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

}  // namespace

static_assert(data::kIgnored == model::kMasked, "one word for an untrained target");

model::Batch to_model_batch(const data::MicroBatch& micro_batch) {
  return {to_tensor(micro_batch.ids), to_tensor(micro_batch.positions), to_tensor(micro_batch.targets),
          micro_batch.document_starts};
}

}  // namespace headrace::train
