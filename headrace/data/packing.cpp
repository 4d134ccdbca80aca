#include "headrace/data/packing.h"

#include <algorithm>
#include <vector>

namespace headrace::data {
namespace {

constexpr int64_t kShortest = 2;  // tokens of a document: fewer teach nothing and are never kept

void close_sequence(EpochPlan& plan) { plan.sequence_starts.push_back(static_cast<int64_t>(plan.pieces.size())); }

}  // namespace

void pack_first_fit(std::span<const Piece> pieces, int64_t max_length, int64_t look_ahead, EpochPlan& plan) {
  std::vector<Piece> window;  // the next unplaced documents, in order
  size_t taken = 0;
  const auto refill = [&] {
    while (taken < pieces.size() && static_cast<int64_t>(window.size()) < std::max<int64_t>(1, look_ahead)) {
      window.push_back(pieces[taken++]);
    }
  };
  for (refill(); !window.empty(); refill()) {
    int64_t room = max_length;
    for (size_t i = 0; i < window.size() && room >= kShortest;) {
      if (window[i].length() > room) {
        ++i;
        continue;
      }
      room -= window[i].length();
      plan.pieces.push_back(window[i]);
      window.erase(window.begin() + static_cast<std::ptrdiff_t>(i));
      refill();
    }
    close_sequence(plan);
  }
}

void pack_stream(std::span<const Piece> pieces, int64_t max_length, EpochPlan& plan) {
  int64_t room = max_length;
  for (Piece rest : pieces) {
    while (rest.length() > 0) {
      Piece part = rest;
      part.end = std::min(rest.end, rest.begin + room);
      plan.pieces.push_back(part);
      rest.begin = part.end;
      room -= part.length();
      if (room > 0) continue;
      close_sequence(plan);
      room = max_length;
    }
  }
  if (room < max_length) close_sequence(plan);
}

void cut_to_length(const Piece& piece, int64_t max_length, std::vector<Piece>& out) {
  Piece part = piece;
  for (part.begin = piece.begin; part.begin < piece.end; part.begin = part.end) {
    part.end = std::min(piece.end, part.begin + max_length);
    const bool predicts = part.begin + 1 < piece.document_end;
    if (predicts) out.push_back(part);
  }
}

}  // namespace headrace::data
