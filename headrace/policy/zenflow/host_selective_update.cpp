#include "headrace/policy/zenflow/selective_update.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "headrace/policy/zenflow/exchange.h"

namespace headrace::policy::zenflow {
namespace {

constexpr int64_t kGrain = 65536;  // elements one thread takes at a time

std::span<float> part(float* values, int64_t offset, int64_t numel) {
  return {values + offset, static_cast<size_t>(numel)};
}

std::span<float> weights_of(const DeviceBlock& block, const MatrixColumns& matrix) {
  return part(block.buffers.weights.data_ptr<float>(), matrix.offset, matrix.shape.num_elements());
}

std::span<const float> gradients_of(const DeviceBlock& block, const MatrixColumns& matrix) {
  return part(block.buffers.gradients.data_ptr<float>(), matrix.offset, matrix.shape.num_elements());
}

// The compact important part of a matrix, as a matrix.
kernel::MatrixShape important_shape(const MatrixColumns& matrix) {
  return {kernel::num_lines(matrix.shape, matrix.important.size()),
          kernel::line_width(matrix.shape, matrix.important.size()), matrix.shape.axis};
}

void split_all_important(const DeviceBlock& block, const MatrixColumns& matrix, ColumnScore& score) {
  const std::span<const float> gradients = gradients_of(block, matrix);
  kernel::gather_channels(gradients, matrix.shape, matrix.important, {0, important_shape(matrix).rows},
                          part(block.part.gradient, matrix.important_offset, matrix.important_numel()));
  kernel::add_channel_scores(gradients, matrix.shape, {0, matrix.shape.rows}, score.step());
}

void split_segment(const DeviceBlock& block, const Segment& segment, std::span<float> send, ColumnScore& score) {
  const MatrixColumns& matrix = block.columns.matrices[segment.matrix];
  const std::span<const float> gradients = gradients_of(block, matrix);
  if (matrix.shape.axis == kernel::Axis::kRows) {
    if (segment.lines.begin == 0) split_all_important(block, matrix, score);
    return kernel::gather_channels(gradients, matrix.shape, matrix.deferred, segment.lines, send);
  }
  const auto width = static_cast<int64_t>(matrix.important.size());
  const int64_t offset = matrix.important_offset + segment.lines.begin * width;
  kernel::split_columns(gradients, matrix.shape, segment.lines,
                        {matrix.important, part(block.part.gradient, offset, segment.lines.count() * width)},
                        {matrix.deferred, send}, score.step());
}

kernel::ChannelAdamW channel_adamw(const OptimizerSettings& optimizer, double learning_rate, bool decays) {
  const double decay = decays ? optimizer.weight_decay : 0;
  return {learning_rate, optimizer.beta1, optimizer.beta2, optimizer.epsilon,
          static_cast<float>(1 - learning_rate * decay)};
}

void update_matrix(const DeviceBlock& block, MatrixColumns& matrix, const kernel::ChannelAdamW& adamw,
                   float clip_factor) {
  std::vector<int64_t> updates;
  for (const int32_t channel : matrix.important) updates.push_back(++matrix.updates[static_cast<size_t>(channel)]);
  const kernel::BiasCorrections corrections = kernel::bias_corrections(adamw, updates);
  const int64_t width = kernel::line_width(matrix.shape, matrix.important.size());
  const int64_t lines = kernel::num_lines(matrix.shape, matrix.important.size());
  at::parallel_for(0, lines, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    const int64_t offset = matrix.important_offset + begin * width, numel = (end - begin) * width;
    const kernel::WindowSlot slot{std::span<const float>(part(block.part.gradient, offset, numel)), clip_factor};
    kernel::adamw_update_selected({weights_of(block, matrix), matrix.important, part(block.part.m, offset, numel),
                                   part(block.part.v, offset, numel)},
                                  {{&slot, 1}, 1}, matrix.shape, {begin, end}, corrections, adamw);
  });
}

// Calls body(matrix, exchange, state in the buffer) for all that changes sides in the piece.
template <class Body>
void for_each_exchange(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps,
                       float* buffer, const Body& body) {
  if (swaps.empty()) return;
  const Piece& of_block = block.columns.pieces[piece];
  const int64_t numel = block.columns.exchange_numel(of_block, swaps);
  for (const Exchange& exchange : exchanges_of(block.columns, of_block, swaps)) {
    body(block.columns.matrices[exchange.matrix], exchange, state_in(buffer, exchange, numel));
  }
}

std::vector<int32_t> channels_at(const std::vector<int32_t>& channels, const std::vector<int32_t>& positions) {
  std::vector<int32_t> chosen;
  for (const int32_t position : positions) chosen.push_back(channels[static_cast<size_t>(position)]);
  return chosen;
}

}  // namespace

void split_undeferred(const DeviceBlock& block, std::vector<ColumnScore>& scores) {
  const auto* gradients = block.buffers.gradients.const_data_ptr<float>();
  for (const Vector& vector : block.columns.vectors) {
    std::copy_n(gradients + vector.offset, vector.numel, block.part.gradient + vector.important_offset);
  }
  for (size_t i = 0; i < block.columns.matrices.size(); ++i) {
    const MatrixColumns& matrix = block.columns.matrices[i];
    if (matrix.deferred.empty()) split_all_important(block, matrix, scores[i]);
  }
}

void split_piece(const DeviceBlock& block, size_t piece, float* send, std::vector<ColumnScore>& scores) {
  int64_t at = 0;
  for (const Segment& segment : block.columns.pieces[piece].segments) {
    const int64_t numel = segment.lines.count() * block.columns.matrices[segment.matrix].deferred_line_width();
    split_segment(block, segment, part(send, at, numel), scores[segment.matrix]);
    at += numel;
  }
}

void update_important(const DeviceBlock& block, const OptimizerSettings& optimizer, double learning_rate,
                      float clip_factor) {
  const kernel::AdamWStep step{.learning_rate = learning_rate,
                               .beta1 = optimizer.beta1,
                               .beta2 = optimizer.beta2,
                               .epsilon = optimizer.epsilon,
                               .step = ++block.columns.vector_updates,
                               .gradient_scale = clip_factor};
  auto* weights = block.buffers.weights.data_ptr<float>();
  for (const Vector& vector : block.columns.vectors) {
    kernel::AdamWStep own = step;
    own.weight_decay = vector.decays ? optimizer.weight_decay : 0;
    const int64_t at = vector.important_offset, numel = vector.numel;
    kernel::adamw_update(part(weights, vector.offset, numel), part(block.part.m, at, numel),
                         part(block.part.v, at, numel), std::span<const float>(part(block.part.gradient, at, numel)),
                         own);
  }
  for (MatrixColumns& matrix : block.columns.matrices) {
    update_matrix(block, matrix, channel_adamw(optimizer, learning_rate, matrix.decays), clip_factor);
  }
}

void merge_piece(const DeviceBlock& block, size_t piece, const float* staging) {
  int64_t at = 0;
  for (const Segment& segment : block.columns.pieces[piece].segments) {
    const MatrixColumns& matrix = block.columns.matrices[segment.matrix];
    const int64_t numel = segment.lines.count() * matrix.deferred_line_width();
    kernel::scatter_channels({staging + at, static_cast<size_t>(numel)}, matrix.shape, matrix.deferred, segment.lines,
                             weights_of(block, matrix));
    at += numel;
  }
}

void release_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps, float* send) {
  for_each_exchange(block, piece, swaps, send, [&](const MatrixColumns& matrix, const Exchange& what, ColumnState to) {
    const auto moment = [&](float* all, float* into) {
      kernel::gather_channels(part(all, matrix.important_offset, matrix.important_numel()), important_shape(matrix),
                              what.important, what.lines, part(into, 0, what.numel));
    };
    kernel::gather_channels(weights_of(block, matrix), matrix.shape, channels_at(matrix.important, what.important),
                            what.lines, part(to.master, 0, what.numel));
    moment(block.part.m, to.m);
    moment(block.part.v, to.v);
  });
}

void adopt_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps,
                   float* staging) {
  for_each_exchange(
      block, piece, swaps, staging, [&](const MatrixColumns& matrix, const Exchange& what, ColumnState from) {
        const auto moment = [&](float* values, float* all) {
          kernel::scatter_channels(part(values, 0, what.numel), important_shape(matrix), what.important, what.lines,
                                   part(all, matrix.important_offset, matrix.important_numel()));
        };
        kernel::scatter_channels(part(from.master, 0, what.numel), matrix.shape,
                                 channels_at(matrix.important, what.important), what.lines, weights_of(block, matrix));
        moment(from.m, block.part.m);
        moment(from.v, block.part.v);
      });
}

}  // namespace headrace::policy::zenflow
