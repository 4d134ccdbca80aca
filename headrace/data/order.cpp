#include "headrace/data/order.h"

#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"
#include "headrace/data/fingerprint.h"
#include "headrace/data/packing.h"

namespace headrace::data {
namespace {

constexpr uint64_t kSequenceStream = 0x73657175656e6365;  // keeps the second shuffle apart from the first

std::vector<Piece> shuffled(std::vector<Piece> pieces, const OrderConfig& config, int64_t epoch) {
  if (!config.shuffle) return pieces;
  Rng rng(mix_seed(config.seed, static_cast<uint64_t>(epoch)));
  rng.shuffle(pieces);
  return pieces;
}

// Sequences cut from one stream are neighbours in their text: without this, every epoch would read a file in its order.
void shuffle_sequences(EpochPlan& plan, const OrderConfig& config, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(plan.sequences()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  Rng rng(mix_seed(config.seed ^ kSequenceStream, static_cast<uint64_t>(epoch)));
  rng.shuffle(order);
  EpochPlan moved;
  moved.pieces.reserve(plan.pieces.size());
  for (const int64_t sequence : order) {
    const auto pieces = plan.range(sequence, sequence + 1);
    moved.pieces.insert(moved.pieces.end(), pieces.begin(), pieces.end());
    moved.sequence_starts.push_back(static_cast<int64_t>(moved.pieces.size()));
  }
  plan = std::move(moved);
}

EpochPlan plan_packed(const Corpus& corpus, std::span<const Piece> pieces, const OrderConfig& config, int64_t epoch) {
  std::vector<Piece> conversations, texts;
  for (const Piece& piece : shuffled({pieces.begin(), pieces.end()}, config, epoch)) {
    (corpus.documents()[piece.document].is_text ? texts : conversations).push_back(piece);
  }
  EpochPlan plan;
  pack_first_fit(conversations, config.max_length, config.pack_look_ahead, plan);
  pack_stream(texts, config.max_length, plan);
  if (config.shuffle && !texts.empty()) shuffle_sequences(plan, config, epoch);
  return plan;
}

}  // namespace

std::span<const Piece> EpochPlan::range(int64_t first_sequence, int64_t end_sequence) const {
  const int64_t begin = sequence_starts[first_sequence], end = sequence_starts[end_sequence];
  return std::span(pieces).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

void check_order(const Corpus& corpus, std::span<const Piece> pieces, const OrderConfig& config) {
  if (config.max_length < 2) {
    throw ConfigError("data.order", "max_length is " + std::to_string(config.max_length) + ", must be at least 2.");
  }
  for (const Piece& piece : pieces) {
    if (corpus.documents()[piece.document].is_text || piece.length() <= config.max_length) continue;
    throw ConfigError("data.order", corpus.where(piece.document) + " has " + std::to_string(piece.length()) +
                                        " tokens, max_length is " + std::to_string(config.max_length) +
                                        ". Load the corpus with the same max_length.");
  }
}

EpochPlan plan_epoch(const Corpus& corpus, std::span<const Piece> pieces, const OrderConfig& config, int64_t epoch) {
  if (config.layout == Layout::packed) return plan_packed(corpus, pieces, config, epoch);
  EpochPlan plan;
  for (const Piece& piece : pieces) cut_to_length(piece, config.max_length, plan.pieces);
  plan.pieces = shuffled(std::move(plan.pieces), config, epoch);
  for (size_t i = 0; i < plan.pieces.size(); ++i) plan.sequence_starts.push_back(static_cast<int64_t>(i) + 1);
  return plan;
}

std::string fingerprint_of(const Corpus& corpus, std::span<const Piece> pieces) {
  Fingerprint fingerprint;
  fingerprint.add_text(corpus.fingerprint());
  for (const Piece& piece : pieces) {
    for (const int64_t value : {piece.document, piece.begin, piece.end, piece.document_end}) fingerprint.add(value);
  }
  return fingerprint.hex();
}

}  // namespace headrace::data
