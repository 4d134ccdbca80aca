#include "headrace/policy/zenflow/columns.h"

#include <algorithm>
#include <numeric>

namespace headrace::policy::zenflow {
namespace {

kernel::MatrixShape shape_of(const model::ParameterSpec& parameter) {
  const bool is_in_out = parameter.layout == model::Layout::kInOut;
  const int64_t width = parameter.shape.back();
  return {parameter.numel / width, width, is_in_out ? kernel::Axis::kRows : kernel::Axis::kColumns};
}

MatrixColumns make_matrix(const model::ParameterSpec& parameter, double topk_ratio) {
  MatrixColumns matrix{.offset = parameter.offset,
                       .shape = shape_of(parameter),
                       .decays = parameter.decays,
                       .important = {},
                       .deferred = {},
                       .updates = {}};
  const int64_t channels = matrix.shape.num_channels(), important = num_important(topk_ratio, channels);
  matrix.important.resize(static_cast<size_t>(important));
  matrix.deferred.resize(static_cast<size_t>(channels - important));
  std::iota(matrix.important.begin(), matrix.important.end(), 0);
  std::iota(matrix.deferred.begin(), matrix.deferred.end(), static_cast<int32_t>(important));
  matrix.updates.assign(static_cast<size_t>(channels), 0);
  return matrix;
}

// Lines one after the other until a piece is full.
std::vector<Piece> cut(const BlockColumns& block, int64_t piece_numel) {
  std::vector<Piece> pieces;
  int64_t at = 0;  // [elements] given out
  for (size_t i = 0; i < block.matrices.size(); ++i) {
    const int64_t lines = block.matrices[i].num_deferred_lines(), width = block.matrices[i].deferred_line_width();
    if (lines * width == 0) continue;
    for (int64_t line = 0; line < lines;) {
      if (pieces.empty() || pieces.back().end - pieces.back().begin >= piece_numel) {
        pieces.push_back({.segments = {}, .begin = at, .end = at});
      }
      Piece& piece = pieces.back();
      const int64_t room = piece_numel - (piece.end - piece.begin);
      const int64_t taken = std::min(lines - line, std::max<int64_t>(1, (room + width - 1) / width));
      piece.segments.push_back({i, {line, line + taken}});
      piece.end = at += taken * width;
      line += taken;
    }
  }
  return pieces;
}

}  // namespace

kernel::MatrixShape MatrixColumns::important_shape() const {
  return {kernel::num_lines(shape, important.size()), kernel::line_width(shape, important.size()), shape.axis};
}

kernel::MatrixShape MatrixColumns::deferred_shape() const {
  return {num_deferred_lines(), deferred_line_width(), shape.axis};
}

int64_t MatrixColumns::important_numel() const {
  return kernel::num_lines(shape, important.size()) * kernel::line_width(shape, important.size());
}

std::vector<Swap> swaps_in(const MatrixColumns& matrix, const Segment& segment, const std::vector<Swap>& swaps) {
  if (matrix.shape.axis == kernel::Axis::kColumns) return swaps;
  std::vector<Swap> chosen;
  for (const Swap& swap : swaps) {
    if (swap.deferred >= segment.lines.begin && swap.deferred < segment.lines.end) chosen.push_back(swap);
  }
  return chosen;
}

int64_t BlockColumns::exchange_numel(const Piece& piece, const std::vector<std::vector<Swap>>& swaps) const {
  int64_t numel = 0;
  for (const Segment& segment : piece.segments) {
    const MatrixColumns& matrix = matrices[segment.matrix];
    const auto count = static_cast<int64_t>(swaps_in(matrix, segment, swaps[segment.matrix]).size());
    const bool is_columns = matrix.shape.axis == kernel::Axis::kColumns;
    numel += count * (is_columns ? segment.lines.end - segment.lines.begin : matrix.shape.width);
  }
  return numel;
}

int64_t BlockColumns::largest_exchange_numel(const Piece& piece) const {
  int64_t numel = 0;
  for (const Segment& segment : piece.segments) {
    const MatrixColumns& matrix = matrices[segment.matrix];
    const auto most = static_cast<int64_t>(std::min(matrix.important.size(), matrix.deferred.size()));
    const int64_t lines = segment.lines.end - segment.lines.begin;
    const bool is_columns = matrix.shape.axis == kernel::Axis::kColumns;
    numel += is_columns ? most * lines : std::min(most, lines) * matrix.shape.width;
  }
  return numel;
}

BlockColumns make_block_columns(const model::BlockSpec& spec, const std::vector<bool>& is_frozen, double topk_ratio,
                                int64_t piece_numel) {
  BlockColumns block;
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    const model::ParameterSpec& parameter = spec.parameters[i];
    if (is_frozen[i] || parameter.numel == 0) continue;
    if (parameter.layout == model::Layout::kVector) {
      block.vectors.push_back({parameter.offset, parameter.numel, parameter.decays, block.important_numel});
      block.important_numel += parameter.numel;
      continue;
    }
    MatrixColumns matrix = make_matrix(parameter, topk_ratio);
    matrix.important_offset = block.important_numel;
    matrix.deferred_offset = block.deferred_numel;
    block.important_numel += matrix.important_numel();
    block.deferred_numel += matrix.num_deferred_lines() * matrix.deferred_line_width();
    block.matrices.push_back(std::move(matrix));
  }
  block.pieces = cut(block, piece_numel);
  return block;
}

}  // namespace headrace::policy::zenflow
