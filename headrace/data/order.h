// The order of one epoch: a shuffle drawn from (seed, epoch), and the sequences that the layout makes of it.
// Pure: the same arguments give the same plan on every machine, so that a position is two numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/data/batch.h"

namespace headrace::data {

struct OrderConfig {
  uint64_t seed = 0;
  bool shuffle = true;  // false: the files' order in every epoch
  Layout layout = Layout::documents;
  int64_t max_length = 1024;      // [tokens] of one sequence
  int64_t pack_look_ahead = 256;  // documents considered to fill a packed sequence
};

// Sequences of pieces, one after another.
struct EpochPlan {
  std::vector<Piece> pieces;
  std::vector<int64_t> sequence_starts = {0};  // [sequences + 1] into pieces
  int64_t sequences() const { return static_cast<int64_t>(sequence_starts.size()) - 1; }
  std::span<const Piece> range(int64_t first_sequence, int64_t end_sequence) const;
};

// Throws ConfigError when max_length is below 2, or a document that may not be cut is longer than it.
void check_order(const Corpus& corpus, std::span<const Piece> pieces, const OrderConfig& config);

// The pieces must have passed check_order.
EpochPlan plan_epoch(const Corpus& corpus, std::span<const Piece> pieces, const OrderConfig& config, int64_t epoch);

// 32 hex digits over the corpus' fingerprint and the pieces: equal means the same training data, split included.
std::string fingerprint_of(const Corpus& corpus, std::span<const Piece> pieces);

}  // namespace headrace::data
