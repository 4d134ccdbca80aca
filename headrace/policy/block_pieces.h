// How a block that travels in pieces is cut: evenly, or so that the rows of an embedding that the next step's tokens
// need are the first piece. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace::policy {

// [elements] of a block's flat buffer, begin < end.
struct Stretch {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Stretch&) const = default;
};

// By piece: the stretches that make it up, ascending. Every element is in exactly one.
using Pieces = std::vector<std::vector<Stretch>>;

// num_pieces >= 1; a block of fewer elements than pieces has empty ones.
Pieces even_pieces(int64_t numel, int32_t num_pieces);

// A table of rows in a block's flat buffer.
struct RowTable {
  int64_t offset = 0;  // [elements] of its first row
  int64_t rows = 0;
  int64_t width = 0;  // [elements] of a row
};

// Piece 0: the `needed` rows (ascending, without repeats, each in [0, rows)) and all that is not in the table; the
// other rows are shared out evenly, in order, among the other pieces. num_pieces >= 2.
Pieces needed_first_pieces(int64_t numel, const RowTable& table, std::span<const int64_t> needed, int32_t num_pieces);

}  // namespace headrace::policy
