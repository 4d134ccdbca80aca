#include "headrace/policy/zenflow/exchange.h"

namespace headrace::policy::zenflow {

std::vector<Exchange> exchanges_of(const BlockColumns& block, const Piece& piece,
                                   const std::vector<std::vector<Swap>>& swaps) {
  std::vector<Exchange> exchanges;
  int64_t offset = 0;
  for (const Segment& segment : piece.segments) {
    const MatrixColumns& matrix = block.matrices[segment.matrix];
    Exchange exchange{.matrix = segment.matrix, .important = {}, .deferred = {}, .offset = offset};
    for (const Swap& swap : swaps_in(matrix, segment, swaps[segment.matrix])) {
      exchange.important.push_back(swap.important);
      exchange.deferred.push_back(swap.deferred);
    }
    const auto count = static_cast<int64_t>(exchange.deferred.size());
    if (count == 0) continue;
    const bool is_columns = matrix.shape.axis == kernel::Axis::kColumns;
    exchange.lines = is_columns ? segment.lines : kernel::Lines{0, count};
    exchange.numel = exchange.lines.count() * kernel::line_width(matrix.shape, exchange.deferred.size());
    offset += exchange.numel;
    exchanges.push_back(std::move(exchange));
  }
  return exchanges;
}

ColumnState state_in(float* buffer, const Exchange& exchange, int64_t numel) {
  return {buffer + exchange.offset, buffer + numel + exchange.offset, buffer + 2 * numel + exchange.offset};
}

std::vector<int32_t> channels_at(const std::vector<int32_t>& channels, const std::vector<int32_t>& positions) {
  std::vector<int32_t> chosen;
  for (const int32_t position : positions) chosen.push_back(channels[static_cast<size_t>(position)]);
  return chosen;
}

}  // namespace headrace::policy::zenflow
