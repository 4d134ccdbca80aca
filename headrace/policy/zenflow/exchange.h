// Columns that change sides, matrix by matrix of a piece: a column takes master, m, v and its counter along, and no bit
// changes. The other side's half of a swap waits in `leaving` until the window that has just ended is updated, since
// its place is still read. Pure functions of what they are given; the step graph orders who calls them.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/policy/zenflow/columns.h"
#include "headrace/policy/zenflow/storage.h"

namespace headrace::policy::zenflow {

// The swaps of one matrix within a piece, and where their state lies in a buffer of the piece's exchange.
struct Exchange {
  size_t matrix = 0;
  std::vector<int32_t> important, deferred;  // positions
  kernel::Lines lines = {};                  // of the compact parts, both sides: for rows, of the lists above
  int64_t offset = 0;                        // [numbers] in each of the buffer's three parts
  int64_t numel = 0;                         // [numbers] of one kind of state
};

// Of all matrices with swaps in the piece; `swaps` by matrix.
std::vector<Exchange> exchanges_of(const BlockColumns& block, const Piece& piece,
                                   const std::vector<std::vector<Swap>>& swaps);

// The three parts of an exchange's state in a buffer that holds `numel` numbers of each kind.
ColumnState state_in(float* buffer, const Exchange& exchange, int64_t numel);

// Calls body(matrix, exchange, state in `buffer`) for all that changes sides in the piece.
template <class Body>
void for_each_exchange(const BlockColumns& block, size_t piece, const std::vector<std::vector<Swap>>& swaps,
                       float* buffer, const Body& body) {
  if (swaps.empty()) return;
  const int64_t numel = block.exchange_numel(block.pieces[piece], swaps);
  for (const Exchange& exchange : exchanges_of(block, block.pieces[piece], swaps)) {
    body(block.matrices[exchange.matrix], exchange, state_in(buffer, exchange, numel));
  }
}

std::vector<int32_t> channels_at(const std::vector<int32_t>& channels, const std::vector<int32_t>& positions);

}  // namespace headrace::policy::zenflow
