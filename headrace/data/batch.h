// A micro-batch as the model takes it: documents back to back without padding, attention inside each document only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/data/corpus.h"

namespace headrace::data {

inline constexpr int32_t kIgnored = -100;  // the target of a token whose prediction does not count

struct MicroBatch {
  std::vector<int32_t> ids;              // [T]
  std::vector<int32_t> targets;          // [T] the next token of the same document when it is trained, else kIgnored
  std::vector<int32_t> positions;        // [T] 0, 1, 2 ... in each document
  std::vector<int64_t> document_starts;  // [D+1] first token of each document; the last entry is T
  std::vector<int64_t> sample_indices;   // [D] index into Corpus::documents(); -1 for a document of padding
  int64_t trained_tokens = 0;            // targets that count
  int64_t padding_tokens = 0;            // tokens in documents of padding
};

// A run of one document's tokens. Where it ends before `document_end`, its last target is the token that follows.
struct Piece {
  int64_t document;      // index into Corpus::documents()
  int64_t begin, end;    // tokens in the store
  int64_t document_end;  // tokens past this one belong to others (the end of the document or of its training part)
  int64_t length() const { return end - begin; }
};

enum class Layout {
  documents,    // `batch` documents (or pieces of max_length of long texts) back to back
  packed,       // `batch` sequences of at most max_length, filled with whole documents, or with text cut to fit
  padded_left,  // every document padded to the longest of its micro-batch; for comparison
  padded_right,
};
Layout parse_layout(std::string_view word);  // throws ConfigError listing the choices
std::string_view name_of(Layout layout);

// The pieces as documents of one micro-batch, in order. padded_* add a document of padding beside each shorter one.
MicroBatch make_micro_batch(const Corpus& corpus, std::span<const Piece> pieces, Layout layout);

}  // namespace headrace::data
