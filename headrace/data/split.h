// Held-out data: which documents, or which tail of a file that is one document, are never trained.
// Pure and deterministic: the same corpus, seed and amount give the same split on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/data/batch.h"
#include "headrace/data/corpus.h"

namespace headrace::data {

struct SplitConfig {
  double fraction = 0;  // of the documents, in [0, 1); at most one of fraction and count is set
  int64_t count = 0;    // documents
  uint64_t seed = 0;
};

// Spans of documents: document_end is where the span ends, so that no target crosses from one side to the other.
struct Split {
  std::vector<Piece> train, held_out;  // each in the corpus' order
};

// Whole groups are held out, in an order drawn from the seed, until at least the amount asked for is reached; one group
// at least stays on each side. Documents that are whole files give the last `fraction` of their tokens instead.
// Throws ConfigError when the amount cannot be met or both amounts are set.
Split split_corpus(const Corpus& corpus, const SplitConfig& config);

// Every document in full, for a corpus that is trained or evaluated as a whole.
std::vector<Piece> all_of(const Corpus& corpus);

}  // namespace headrace::data
