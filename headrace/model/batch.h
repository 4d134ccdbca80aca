// Tokens as the model sees them: documents of any length back to back, no padding, attention never crosses a document.
// Legend: N tokens of the batch, D documents.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace headrace::config {
struct ModelShape;
}

namespace headrace::model {

inline constexpr int64_t kMasked = -100;  // a target that is not trained, as in Hugging Face labels

struct Batch {
  at::Tensor ids_N;        // int64
  at::Tensor positions_N;  // int64, restart at 0 with each document
  at::Tensor targets_N;    // int64: the token that row must predict (the *next* one: already shifted), or kMasked
  std::vector<int64_t> document_starts;  // [D+1] 0, ..., N; strictly ascending; always in host memory
  at::Tensor trained_rows_R = {};        // int64: rows whose target is trained; undefined: not looked for yet

  int64_t num_tokens() const { return document_starts.empty() ? 0 : document_starts.back(); }
  int64_t num_documents() const { return static_cast<int64_t>(document_starts.size()) - 1; }
  int64_t num_trained_tokens() const;  // targets that are not masked
};

// Packs documents. `labels` are Hugging Face labels (label[i] belongs to token i, kMasked where not trained); they are
// shifted here: row i of a document gets label[i+1], its last row kMasked. Empty documents are dropped.
// Throws InternalError when a document and its labels differ in length.
Batch pack(std::span<const std::vector<int64_t>> documents, std::span<const std::vector<int64_t>> labels);

// int64 [R]: rows whose target is not masked. Waits for a GPU.
at::Tensor find_trained_rows(const at::Tensor& targets_N);

// The batch with its tensors on `device`. `batch` is in host memory. What waiting for a device would find out is found
// out here: trained_rows_R.
Batch to_device(const Batch& batch, at::Device device);

// Throws DataError naming the first id, target, position or document start that does not fit the model's shape.
void check(const Batch& batch, const config::ModelShape& shape);

}  // namespace headrace::model
