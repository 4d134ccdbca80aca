#include "headrace/data/batch.h"

#include <algorithm>

namespace headrace::data {
namespace {

void close_document(MicroBatch& batch, int64_t sample) {
  batch.document_starts.push_back(static_cast<int64_t>(batch.ids.size()));
  batch.sample_indices.push_back(sample);
}

void append_piece(MicroBatch& batch, const TokenStore& tokens, const Piece& piece) {
  for (int64_t i = piece.begin; i < piece.end; ++i) {
    batch.ids.push_back(tokens.id(i));
    batch.positions.push_back(static_cast<int32_t>(i - piece.begin));
    const bool is_trained = i + 1 < piece.document_end && tokens.is_trained(i + 1);
    batch.targets.push_back(is_trained ? tokens.id(i + 1) : kIgnored);
    batch.trained_tokens += is_trained ? 1 : 0;
  }
  close_document(batch, piece.document);
}

void append_padding(MicroBatch& batch, int32_t pad, int64_t length) {
  if (length == 0) return;
  for (int64_t i = 0; i < length; ++i) batch.positions.push_back(static_cast<int32_t>(i));
  batch.ids.insert(batch.ids.end(), length, pad);
  batch.targets.insert(batch.targets.end(), length, kIgnored);
  batch.padding_tokens += length;
  close_document(batch, -1);
}

}  // namespace

MicroBatch make_micro_batch(const Corpus& corpus, std::span<const Piece> pieces, Layout layout) {
  const bool is_padded = layout == Layout::padded_left || layout == Layout::padded_right;
  int64_t longest = 0, total = 0;
  for (const Piece& piece : pieces) {
    longest = std::max(longest, piece.length());
    total += piece.length();
  }
  MicroBatch batch;
  const int64_t tokens = is_padded ? longest * static_cast<int64_t>(pieces.size()) : total;
  batch.ids.reserve(tokens);
  batch.targets.reserve(tokens);
  batch.positions.reserve(tokens);
  batch.document_starts.push_back(0);
  for (const Piece& piece : pieces) {
    const int64_t missing = is_padded ? longest - piece.length() : 0;
    if (layout == Layout::padded_left) append_padding(batch, corpus.pad(), missing);
    append_piece(batch, corpus.tokens(), piece);
    if (layout == Layout::padded_right) append_padding(batch, corpus.pad(), missing);
  }
  return batch;
}

}  // namespace headrace::data
