#include "headrace/model/batch.h"

#include <string>

#include "headrace/base/errors.h"
#include "headrace/config/model_shape.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

[[noreturn]] void refuse(const std::string& what, int64_t row, int64_t value, const std::string& accepted) {
  throw DataError("model.check", what + " " + std::to_string(value) + " of row " + std::to_string(row) + ": " +
                                     accepted + " is accepted.");
}

void check_rows(const at::Tensor& rows, const std::string& what, int64_t num_rows) {
  if (!rows.defined() || rows.scalar_type() != at::kLong || rows.dim() != 1 || rows.numel() != num_rows) {
    throw DataError("model.check", "the batch's " + what + "s must be int64 of " + std::to_string(num_rows) + " rows.");
  }
}

void check_starts(const std::vector<int64_t>& starts) {
  if (starts.size() < 2 || starts[0] != 0) throw DataError("model.check", "a batch needs at least one document.");
  for (size_t i = 1; i < starts.size(); ++i) {
    if (starts[i] <= starts[i - 1]) {
      throw DataError("model.check", "document " + std::to_string(i - 1) + " starts at row " +
                                         std::to_string(starts[i - 1]) + " and ends at " + std::to_string(starts[i]) +
                                         "; documents must not be empty.");
    }
  }
}

}  // namespace

at::Tensor find_trained_rows(const at::Tensor& targets_N) { return targets_N.ne(kMasked).nonzero().flatten(); }

Batch to_device(const Batch& batch, at::Device device) {
  const at::Tensor rows = batch.trained_rows_R.defined() ? batch.trained_rows_R : find_trained_rows(batch.targets_N);
  return {batch.ids_N.to(device), batch.positions_N.to(device), batch.targets_N.to(device), batch.document_starts,
          rows.to(device)};
}

int64_t Batch::num_trained_tokens() const { return targets_N.ne(kMasked).sum().item<int64_t>(); }

Batch pack(std::span<const std::vector<int64_t>> documents, std::span<const std::vector<int64_t>> labels) {
  Batch batch;
  batch.document_starts = {0};
  std::vector<int64_t> ids, positions, targets;
  if (documents.size() != labels.size()) {
    throw InternalError("model.pack", std::to_string(documents.size()) + " documents but " +
                                          std::to_string(labels.size()) + " lists of labels.");
  }
  for (size_t d = 0; d < documents.size(); ++d) {
    const std::vector<int64_t>& document = documents[d];
    if (document.size() != labels[d].size()) {
      throw InternalError("model.pack", "document " + std::to_string(d) + " has " + std::to_string(document.size()) +
                                            " tokens but " + std::to_string(labels[d].size()) + " labels.");
    }
    if (document.empty()) continue;
    for (size_t i = 0; i < document.size(); ++i) {
      ids.push_back(document[i]);
      positions.push_back(static_cast<int64_t>(i));
      targets.push_back(i + 1 < document.size() ? labels[d][i + 1] : kMasked);
    }
    batch.document_starts.push_back(static_cast<int64_t>(ids.size()));
  }
  batch.ids_N = at::tensor(ids, at::kLong);
  batch.positions_N = at::tensor(positions, at::kLong);
  batch.targets_N = at::tensor(targets, at::kLong);
  return batch;
}

void check(const Batch& batch, const config::ModelShape& shape) {
  check_starts(batch.document_starts);
  const int64_t num_rows = batch.num_tokens();
  check_rows(batch.ids_N, "id", num_rows);
  check_rows(batch.positions_N, "position", num_rows);
  check_rows(batch.targets_N, "target", num_rows);
  const at::Tensor ids = batch.ids_N.cpu().contiguous(), positions = batch.positions_N.cpu().contiguous(),
                   targets = batch.targets_N.cpu().contiguous();
  const int64_t *id = ids.const_data_ptr<int64_t>(), *position = positions.const_data_ptr<int64_t>(),
                *target = targets.const_data_ptr<int64_t>();
  const int64_t vocab = shape.vocab_size;
  const int64_t num_positions = shape.has_learned_positions() ? shape.max_positions : INT32_MAX;
  for (int64_t i = 0; i < num_rows; ++i) {
    if (id[i] < 0 || id[i] >= vocab) refuse("token", i, id[i], "0 to " + std::to_string(vocab - 1));
    if (position[i] < 0 || position[i] >= num_positions) {
      refuse("position", i, position[i], "0 to " + std::to_string(num_positions - 1));
    }
    if (target[i] != kMasked && (target[i] < 0 || target[i] >= vocab)) {
      refuse("target", i, target[i], "0 to " + std::to_string(vocab - 1) + " or " + std::to_string(kMasked));
    }
  }
}

}  // namespace headrace::model
