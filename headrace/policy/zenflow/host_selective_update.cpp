#include <ATen/Parallel.h>

#include <algorithm>

#include "headrace/policy/zenflow/exchange.h"
#include "headrace/policy/zenflow/selective_update.h"

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

void split_all_important(const DeviceBlock& block, const MatrixColumns& matrix, ColumnScore& score) {
  const std::span<const float> gradients = gradients_of(block, matrix);
  kernel::gather_channels(gradients, matrix.shape, matrix.important, {0, matrix.important_shape().rows},
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

class HostSelectiveUpdate final : public SelectiveUpdate {
 public:
  void split_undeferred(const DeviceBlock& block, Scores& scores) override;
  void split_piece(const DeviceBlock& block, size_t piece, float* send, Scores& scores) override;
  void take_scores(std::span<Scores* const>) override {}
  void update_important(const DeviceBlock& block, const OptimizerSettings& optimizer, double learning_rate,
                        float clip_factor) override;
  void merge_piece(const DeviceBlock& block, size_t piece, const float* staging) override;
  void release_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps,
                       float* send) override;
  void adopt_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps,
                     float* staging) override;
};

void HostSelectiveUpdate::split_undeferred(const DeviceBlock& block, Scores& scores) {
  const auto* gradients = block.buffers.gradients.const_data_ptr<float>();
  for (const Vector& vector : block.columns.vectors) {
    std::copy_n(gradients + vector.offset, vector.numel, block.part.gradient + vector.important_offset);
  }
  for (size_t i = 0; i < block.columns.matrices.size(); ++i) {
    const MatrixColumns& matrix = block.columns.matrices[i];
    if (matrix.deferred.empty()) split_all_important(block, matrix, scores[i]);
  }
}

void HostSelectiveUpdate::split_piece(const DeviceBlock& block, size_t piece, float* send, Scores& scores) {
  int64_t at = 0;
  for (const Segment& segment : block.columns.pieces[piece].segments) {
    const int64_t numel = segment.lines.count() * block.columns.matrices[segment.matrix].deferred_line_width();
    split_segment(block, segment, part(send, at, numel), scores[segment.matrix]);
    at += numel;
  }
}

void HostSelectiveUpdate::update_important(const DeviceBlock& block, const OptimizerSettings& optimizer,
                                           double learning_rate, float clip_factor) {
  const int64_t update = ++block.columns.vector_updates;
  auto* weights = block.buffers.weights.data_ptr<float>();
  for (const Vector& vector : block.columns.vectors) {
    kernel::AdamWStep own = vector_adamw(optimizer, learning_rate, vector.decays, update);
    own.gradient_scale = clip_factor;
    const int64_t at = vector.important_offset, numel = vector.numel;
    kernel::adamw_update(part(weights, vector.offset, numel), part(block.part.m, at, numel),
                         part(block.part.v, at, numel), std::span<const float>(part(block.part.gradient, at, numel)),
                         own);
  }
  for (MatrixColumns& matrix : block.columns.matrices) {
    update_matrix(block, matrix, channel_adamw(optimizer, learning_rate, matrix.decays), clip_factor);
  }
}

void HostSelectiveUpdate::merge_piece(const DeviceBlock& block, size_t piece, const float* staging) {
  int64_t at = 0;
  for (const Segment& segment : block.columns.pieces[piece].segments) {
    const MatrixColumns& matrix = block.columns.matrices[segment.matrix];
    const int64_t numel = segment.lines.count() * matrix.deferred_line_width();
    kernel::scatter_channels({staging + at, static_cast<size_t>(numel)}, matrix.shape, matrix.deferred, segment.lines,
                             weights_of(block, matrix));
    at += numel;
  }
}

void HostSelectiveUpdate::release_columns(const DeviceBlock& block, size_t piece,
                                          const std::vector<std::vector<Swap>>& swaps, float* send) {
  for_each_exchange(
      block.columns, piece, swaps, send, [&](const MatrixColumns& matrix, const Exchange& what, ColumnState to) {
        const auto moment = [&](float* all, float* into) {
          kernel::gather_channels(part(all, matrix.important_offset, matrix.important_numel()),
                                  matrix.important_shape(), what.important, what.lines, part(into, 0, what.numel));
        };
        kernel::gather_channels(weights_of(block, matrix), matrix.shape, channels_at(matrix.important, what.important),
                                what.lines, part(to.master, 0, what.numel));
        moment(block.part.m, to.m);
        moment(block.part.v, to.v);
      });
}

void HostSelectiveUpdate::adopt_columns(const DeviceBlock& block, size_t piece,
                                        const std::vector<std::vector<Swap>>& swaps, float* staging) {
  for_each_exchange(
      block.columns, piece, swaps, staging, [&](const MatrixColumns& matrix, const Exchange& what, ColumnState from) {
        const auto moment = [&](float* values, float* all) {
          kernel::scatter_channels(part(values, 0, what.numel), matrix.important_shape(), what.important, what.lines,
                                   part(all, matrix.important_offset, matrix.important_numel()));
        };
        kernel::scatter_channels(part(from.master, 0, what.numel), matrix.shape,
                                 channels_at(matrix.important, what.important), what.lines, weights_of(block, matrix));
        moment(from.m, block.part.m);
        moment(from.v, block.part.v);
      });
}

}  // namespace

std::unique_ptr<SelectiveUpdate> make_host_selective_update() { return std::make_unique<HostSelectiveUpdate>(); }

}  // namespace headrace::policy::zenflow
