#include "headrace/policy/zenflow/deferred_update.h"

#include <algorithm>
#include <vector>

#include "headrace/policy/zenflow/exchange.h"

namespace headrace::policy::zenflow {
namespace {

std::span<float> part(float* values, int64_t offset, int64_t numel) {
  return {values + offset, static_cast<size_t>(numel)};
}

std::span<const float> const_part(const float* values, int64_t offset, int64_t numel) {
  return {values + offset, static_cast<size_t>(numel)};
}

const kernel::ChannelAdamW& adamw_of(const WindowUpdate& update, const MatrixColumns& matrix) {
  return matrix.decays ? update.decaying : update.plain;
}

// Lines of one matrix: offset and count are those of the block's deferred part.
void update_lines(const DeferredPiece& at, const WindowUpdate& update, size_t index, kernel::Lines lines) {
  const MatrixColumns& matrix = at.block.matrices[index];
  const int64_t width = matrix.deferred_line_width(), numel = lines.count() * width;
  const int64_t offset = matrix.deferred_offset + lines.begin * width;
  std::vector<kernel::WindowSlot> slots;
  for (const WindowParts::Part& of_step : update.parts.parts) {
    slots.push_back({const_part(at.part.gradients[static_cast<size_t>(of_step.slot)], offset, numel), of_step.scale});
  }
  const ColumnState& state = at.part.state;
  kernel::adamw_update_channels(
      {part(state.master, offset, numel), part(state.m, offset, numel), part(state.v, offset, numel)},
      {slots, update.parts.mean_scale}, matrix.shape, lines, update.corrections[index], adamw_of(update, matrix));
}

// Columns that left the device take their places.
void take_in(const DeferredPiece& at, const WindowUpdate& update) {
  const Piece& piece = at.piece();
  const int64_t numel = at.block.exchange_numel(piece, update.swaps);
  float* buffer = at.part.leaving + exchange_offset(at.block, at.index);
  for (const Exchange& exchange : exchanges_of(at.block, piece, update.swaps)) {
    const MatrixColumns& matrix = at.block.matrices[exchange.matrix];
    const kernel::MatrixShape shape = matrix.deferred_shape();
    const ColumnState from = state_in(buffer, exchange, numel), &to = at.part.state;
    const auto put = [&](const float* values, float* all) {
      kernel::scatter_channels(const_part(values, 0, exchange.numel), shape, exchange.deferred, exchange.lines,
                               part(all, matrix.deferred_offset, shape.num_elements()));
    };
    put(from.master, to.master);
    put(from.m, to.m);
    put(from.v, to.v);
  }
}

// A swap's columns alone, as a matrix of their own.
void update_chosen(const DeferredPiece& at, const WindowUpdate& update, const Exchange& exchange,
                   const ColumnState& to) {
  const MatrixColumns& matrix = at.block.matrices[exchange.matrix];
  const kernel::MatrixShape shape = matrix.deferred_shape();
  const auto chosen = [&](const float* all, std::span<float> into) {
    kernel::gather_channels(const_part(all, matrix.deferred_offset, shape.num_elements()), shape, exchange.deferred,
                            exchange.lines, into);
  };
  const ColumnState& from = at.part.state;
  const kernel::CompactState state{part(to.master, 0, exchange.numel), part(to.m, 0, exchange.numel),
                                   part(to.v, 0, exchange.numel)};
  chosen(from.master, state.master);
  chosen(from.m, state.m);
  chosen(from.v, state.v);
  std::vector<std::vector<float>> gradients;
  std::vector<kernel::WindowSlot> slots;
  for (const WindowParts::Part& of_step : update.parts.parts) {
    gradients.emplace_back(static_cast<size_t>(exchange.numel));
    chosen(at.part.gradients[static_cast<size_t>(of_step.slot)], gradients.back());
    slots.push_back({std::span<const float>(gradients.back()), of_step.scale});
  }
  kernel::BiasCorrections corrections;
  for (const int32_t position : exchange.deferred) {
    corrections.step_size.push_back(update.corrections[exchange.matrix].step_size[static_cast<size_t>(position)]);
    corrections.second_correction.push_back(
        update.corrections[exchange.matrix].second_correction[static_cast<size_t>(position)]);
  }
  const auto count = static_cast<int64_t>(exchange.deferred.size());
  const bool is_columns = shape.axis == kernel::Axis::kColumns;
  const kernel::MatrixShape own{is_columns ? exchange.lines.count() : count, is_columns ? count : shape.width,
                                shape.axis};
  kernel::adamw_update_channels(state, {slots, update.parts.mean_scale}, own, {0, own.rows}, corrections,
                                adamw_of(update, matrix));
}

}  // namespace

int64_t add_to_running_sum(const DeferredPiece& at, const BlockPlan& plan, device::Pace& pace) {
  const int64_t touched = accumulate_bytes(plan.arrival.is_first), chunk = device::Pace::kPieceBytes / touched;
  const auto [begin, end] = std::pair(at.piece().begin, at.piece().end);
  pace.begin();
  for (int64_t from = begin; from < end; from += chunk) {
    const int64_t numel = std::min(chunk, end - from);
    kernel::accumulate_gradient(part(at.part.gradients[static_cast<size_t>(plan.arrival.slot)], from, numel),
                                const_part(at.part.arrival, from, numel), plan.scale, plan.arrival.is_first);
    pace.moved(numel * touched);
  }
  return (end - begin) * touched;
}

int64_t update_window(const DeferredPiece& at, const WindowUpdate& update, device::Pace& pace) {
  if (update.parts.parts.empty()) return 0;
  const int64_t touched = window_update_bytes(static_cast<int64_t>(update.parts.parts.size()));
  pace.begin();
  for (const Segment& segment : at.piece().segments) {
    const int64_t width = at.block.matrices[segment.matrix].deferred_line_width();
    const int64_t chunk = std::max<int64_t>(1, device::Pace::kPieceBytes / (touched * width));
    for (int64_t line = segment.lines.begin; line < segment.lines.end; line += chunk) {
      const kernel::Lines lines{line, std::min(line + chunk, segment.lines.end)};
      update_lines(at, update, segment.matrix, lines);
      pace.moved(lines.count() * width * touched);
    }
  }
  if (!update.swaps.empty()) take_in(at, update);
  return (at.piece().end - at.piece().begin) * touched;
}

void update_early(const DeferredPiece& at, const WindowUpdate& update) {
  if (update.swaps.empty()) return;
  const int64_t numel = at.block.exchange_numel(at.piece(), update.swaps);
  float* buffer = at.part.coming + exchange_offset(at.block, at.index);
  for (const Exchange& exchange : exchanges_of(at.block, at.piece(), update.swaps)) {
    update_chosen(at, update, exchange, state_in(buffer, exchange, numel));
  }
}

}  // namespace headrace::policy::zenflow
