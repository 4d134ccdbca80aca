#include "headrace/policy/block_pieces.h"

namespace headrace::policy {
namespace {

// Neighbours become one.
void append(std::vector<Stretch>& stretches, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (!stretches.empty() && stretches.back().end == begin) {
    stretches.back().end = end;
  } else {
    stretches.push_back({begin, end});
  }
}

}  // namespace

Pieces even_pieces(int64_t numel, int32_t num_pieces) {
  Pieces pieces(static_cast<size_t>(num_pieces));
  for (int64_t p = 0; p < num_pieces; ++p) {
    append(pieces[static_cast<size_t>(p)], numel * p / num_pieces, numel * (p + 1) / num_pieces);
  }
  return pieces;
}

Pieces needed_first_pieces(int64_t numel, const RowTable& table, std::span<const int64_t> needed, int32_t num_pieces) {
  Pieces pieces(static_cast<size_t>(num_pieces));
  const int64_t num_late = num_pieces - 1, table_end = table.offset + table.rows * table.width;
  append(pieces[0], 0, table.offset);
  size_t next = 0;  // of needed
  for (int64_t p = 0; p < num_late; ++p) {
    const int64_t end = table.rows * (p + 1) / num_late;
    for (int64_t row = table.rows * p / num_late; row < end; ++row) {
      const bool is_needed = next < needed.size() && needed[next] == row;
      if (is_needed) ++next;
      const int64_t begin = table.offset + row * table.width;
      append(pieces[is_needed ? 0 : static_cast<size_t>(p) + 1], begin, begin + table.width);
    }
  }
  append(pieces[0], table_end, numel);
  return pieces;
}

}  // namespace headrace::policy
