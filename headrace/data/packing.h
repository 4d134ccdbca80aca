// Filling sequences of at most max_length: whole documents where they are conversations, cut to fit where they are
// text. Both keep every document to itself and are deterministic. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/data/batch.h"
#include "headrace/data/order.h"

namespace headrace::data {

// First fit: each sequence takes, in order, every document that still fits among the next `look_ahead` unplaced ones.
// Every piece must be no longer than max_length. Appends to `plan`. Time: documents x look_ahead at worst.
void pack_first_fit(std::span<const Piece> pieces, int64_t max_length, int64_t look_ahead, EpochPlan& plan);

// Concatenates and cuts: every sequence but the last holds exactly max_length tokens. A cut loses no target: a piece's
// last target is the first token after the cut. Appends to `plan`.
void pack_stream(std::span<const Piece> pieces, int64_t max_length, EpochPlan& plan);

// A piece longer than max_length as several, each a sequence to be; shorter ones as they are. A last token that would
// stand alone is left out: it predicts nothing.
void cut_to_length(const Piece& piece, int64_t max_length, std::vector<Piece>& out);

}  // namespace headrace::data
