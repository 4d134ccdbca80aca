// Which columns are where is decided on the host; the GPU has copies of the lists, renewed when they have changed.
#include <algorithm>
#include <functional>

#include "headrace/kernel/cuda/adamw.h"
#include "headrace/kernel/cuda/adamw_channels.h"
#include "headrace/policy/device_tensor.h"
#include "headrace/policy/zenflow/exchange.h"
#include "headrace/policy/zenflow/selective_update.h"
#include "headrace/tensor/torch.h"

namespace headrace::policy::zenflow {
namespace {

namespace cuda = kernel::cuda;

// Of one matrix.
struct Lists {
  std::vector<int32_t> important, deferred;              // as they were when they were copied
  at::Tensor on_gpu_important, on_gpu_deferred, places;  // int32; places only where channels are columns
  double* scores = nullptr;                              // on the GPU: squares of this step so far
};

cuda::ChannelList list_of(const at::Tensor& channels) { return {channels.const_data_ptr<int32_t>(), channels.numel()}; }

class GpuSelectiveUpdate final : public SelectiveUpdate {
 public:
  GpuSelectiveUpdate(const device::Device& device, const std::vector<BlockColumns>& columns);

  void split_undeferred(const DeviceBlock& block, Scores& scores) override;
  void split_piece(const DeviceBlock& block, size_t piece, float* send, Scores& scores) override;
  void take_scores(std::span<Scores* const> blocks) override;
  void update_important(const DeviceBlock& block, const OptimizerSettings& optimizer, double learning_rate,
                        float clip_factor) override;
  void merge_piece(const DeviceBlock& block, size_t piece, const float* staging) override;
  void release_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps,
                       float* send) override;
  void adopt_columns(const DeviceBlock& block, size_t piece, const std::vector<std::vector<Swap>>& swaps,
                     float* staging) override;

 private:
  template <class T>
  at::Tensor upload(std::span<const T> values) const;
  const Lists& lists_of(const DeviceBlock& block, size_t matrix);
  void split_all_important(const DeviceBlock& block, size_t matrix);
  void split_segment(const DeviceBlock& block, const Segment& segment, float* send);
  void update_matrix(const DeviceBlock& block, size_t matrix, const kernel::ChannelAdamW& adamw, float clip_factor);
  at::Tensor workspace(const kernel::MatrixShape& shape, kernel::Lines rows) const;

  const device::Device& device_;
  std::vector<std::vector<Lists>> lists_;  // by block and matrix
  at::Tensor scores_;                      // fp64, of all matrices one after the other
};

GpuSelectiveUpdate::GpuSelectiveUpdate(const device::Device& device, const std::vector<BlockColumns>& columns)
    : device_(device) {
  int64_t channels = 0;
  for (const BlockColumns& block : columns) {
    lists_.emplace_back(block.matrices.size());
    for (const MatrixColumns& matrix : block.matrices) channels += matrix.shape.num_channels();
  }
  scores_ = at::zeros({channels}, at::TensorOptions(at::kDouble).device(torch_device(device)));
  double* next = scores_.data_ptr<double>();
  for (size_t block = 0; block < columns.size(); ++block) {
    for (size_t i = 0; i < lists_[block].size(); ++i) {
      lists_[block][i].scores = next;
      next += columns[block].matrices[i].shape.num_channels();
    }
  }
}

template <class T>
at::Tensor GpuSelectiveUpdate::upload(std::span<const T> values) const {
  at::Tensor host = at::empty({static_cast<int64_t>(values.size())}, c10::CppTypeToScalarType<T>::value);
  std::ranges::copy(values, host.template data_ptr<T>());
  return host.to(torch_device(device_));
}

const Lists& GpuSelectiveUpdate::lists_of(const DeviceBlock& block, size_t matrix) {
  Lists& lists = lists_[block.index][matrix];
  const MatrixColumns& now = block.columns.matrices[matrix];
  const bool is_new = !lists.on_gpu_important.defined();
  if (!is_new && lists.important == now.important && lists.deferred == now.deferred) return lists;
  lists.important = now.important;
  lists.deferred = now.deferred;
  lists.on_gpu_important = upload<int32_t>(now.important);
  lists.on_gpu_deferred = upload<int32_t>(now.deferred);
  if (now.shape.axis == kernel::Axis::kColumns) {
    lists.places = upload<int32_t>(cuda::column_places(now.important, now.deferred, now.shape));
  }
  return lists;
}

at::Tensor GpuSelectiveUpdate::workspace(const kernel::MatrixShape& shape, kernel::Lines rows) const {
  return at::empty({cuda::score_workspace(shape, rows)}, scores_.options());
}

void GpuSelectiveUpdate::split_all_important(const DeviceBlock& block, size_t index) {
  const MatrixColumns& matrix = block.columns.matrices[index];
  const Lists& lists = lists_of(block, index);
  const float* gradients = block.buffers.gradients.const_data_ptr<float>() + matrix.offset;
  const kernel::Lines rows{0, matrix.shape.rows};
  const at::Tensor room = workspace(matrix.shape, rows);
  cuda::gather_channels(gradients, matrix.shape, list_of(lists.on_gpu_important), {0, matrix.important_shape().rows},
                        block.part.gradient + matrix.important_offset, nullptr);
  cuda::add_channel_scores(gradients, matrix.shape, rows, {lists.scores, room.data_ptr<double>()}, nullptr);
}

void GpuSelectiveUpdate::split_segment(const DeviceBlock& block, const Segment& segment, float* send) {
  const MatrixColumns& matrix = block.columns.matrices[segment.matrix];
  const Lists& lists = lists_of(block, segment.matrix);
  const float* gradients = block.buffers.gradients.const_data_ptr<float>() + matrix.offset;
  if (matrix.shape.axis == kernel::Axis::kRows) {
    if (segment.lines.begin == 0) split_all_important(block, segment.matrix);
    return cuda::gather_channels(gradients, matrix.shape, list_of(lists.on_gpu_deferred), segment.lines, send, nullptr);
  }
  const auto num_important = static_cast<int64_t>(matrix.important.size());
  const at::Tensor room = workspace(matrix.shape, segment.lines);
  float* important = block.part.gradient + matrix.important_offset + segment.lines.begin * num_important;
  cuda::split_columns(gradients, matrix.shape, segment.lines,
                      {.places = lists.places.const_data_ptr<int32_t>(),
                       .important = important,
                       .num_important = num_important,
                       .deferred = send,
                       .num_deferred = static_cast<int64_t>(matrix.deferred.size())},
                      {lists.scores, room.data_ptr<double>()}, nullptr);
}

void GpuSelectiveUpdate::split_undeferred(const DeviceBlock& block, Scores&) {
  for (const Vector& vector : block.columns.vectors) {
    tensor_at(device_, block.part.gradient + vector.important_offset, vector.numel)
        .copy_(block.buffers.gradients.narrow(0, vector.offset, vector.numel));
  }
  for (size_t i = 0; i < block.columns.matrices.size(); ++i) {
    if (block.columns.matrices[i].deferred.empty()) split_all_important(block, i);
  }
}

void GpuSelectiveUpdate::split_piece(const DeviceBlock& block, size_t piece, float* send, Scores&) {
  for (const Segment& segment : block.columns.pieces[piece].segments) {
    split_segment(block, segment, send);
    send += segment.lines.count() * block.columns.matrices[segment.matrix].deferred_line_width();
  }
}

void GpuSelectiveUpdate::take_scores(std::span<Scores* const> blocks) {
  const at::Tensor host = scores_.cpu();
  const double* next = host.const_data_ptr<double>();
  for (Scores* scores : blocks) {
    for (ColumnScore& score : *scores) {
      std::ranges::transform(score.step(), std::span(next, score.step().size()), score.step().begin(), std::plus<>());
      next += score.step().size();
    }
  }
  scores_.zero_();
}

void GpuSelectiveUpdate::update_matrix(const DeviceBlock& block, size_t index, const kernel::ChannelAdamW& adamw,
                                       float clip_factor) {
  MatrixColumns& matrix = block.columns.matrices[index];
  std::vector<int64_t> updates;
  for (const int32_t channel : matrix.important) updates.push_back(++matrix.updates[static_cast<size_t>(channel)]);
  kernel::BiasCorrections corrections = kernel::bias_corrections(adamw, updates);
  const auto count = static_cast<int64_t>(updates.size());
  std::vector<float>& both = corrections.step_size;
  both.insert(both.end(), corrections.second_correction.begin(), corrections.second_correction.end());
  const at::Tensor on_gpu = upload<float>(both);
  const cuda::DeviceSlot slot{{.fp32 = block.part.gradient + matrix.important_offset}, clip_factor};
  cuda::adamw_update_selected(
      {block.buffers.weights.data_ptr<float>() + matrix.offset, block.part.m + matrix.important_offset,
       block.part.v + matrix.important_offset},
      list_of(lists_of(block, index).on_gpu_important).channels, matrix.shape, {0, matrix.important_shape().rows},
      {.window = {{&slot, 1}, 1},
       .corrections = {on_gpu.const_data_ptr<float>(), on_gpu.const_data_ptr<float>() + count, count},
       .adamw = adamw},
      nullptr);
}

void GpuSelectiveUpdate::update_important(const DeviceBlock& block, const OptimizerSettings& optimizer,
                                          double learning_rate, float clip_factor) {
  const int64_t update = ++block.columns.vector_updates;
  for (const Vector& vector : block.columns.vectors) {
    kernel::AdamWStep step = vector_adamw(optimizer, learning_rate, vector.decays, update);
    step.gradient_scale = clip_factor;
    const cuda::DecayRange all{vector.numel, vector.decays};
    cuda::adamw_update({.master = block.buffers.weights.data_ptr<float>() + vector.offset,
                        .m = block.part.m + vector.important_offset,
                        .v = block.part.v + vector.important_offset,
                        .gradient = block.part.gradient + vector.important_offset,
                        .count = vector.numel},
                       {&all, 1}, step, nullptr);
  }
  for (size_t i = 0; i < block.columns.matrices.size(); ++i) {
    const bool decays = block.columns.matrices[i].decays;
    update_matrix(block, i, channel_adamw(optimizer, learning_rate, decays), clip_factor);
  }
}

void GpuSelectiveUpdate::merge_piece(const DeviceBlock& block, size_t piece, const float* staging) {
  for (const Segment& segment : block.columns.pieces[piece].segments) {
    const MatrixColumns& matrix = block.columns.matrices[segment.matrix];
    const Lists& lists = lists_of(block, segment.matrix);
    cuda::scatter_channels(staging, matrix.shape, list_of(lists.on_gpu_deferred), segment.lines,
                           block.buffers.weights.data_ptr<float>() + matrix.offset, nullptr);
    staging += segment.lines.count() * matrix.deferred_line_width();
  }
}

void GpuSelectiveUpdate::release_columns(const DeviceBlock& block, size_t piece,
                                         const std::vector<std::vector<Swap>>& swaps, float* send) {
  const auto release = [&](const MatrixColumns& matrix, const Exchange& what, ColumnState to) {
    const at::Tensor positions = upload<int32_t>(what.important);
    const at::Tensor channels = upload<int32_t>(channels_at(matrix.important, what.important));
    const kernel::MatrixShape compact = matrix.important_shape();
    cuda::gather_channels(block.buffers.weights.const_data_ptr<float>() + matrix.offset, matrix.shape,
                          list_of(channels), what.lines, to.master, nullptr);
    cuda::gather_channels(block.part.m + matrix.important_offset, compact, list_of(positions), what.lines, to.m,
                          nullptr);
    cuda::gather_channels(block.part.v + matrix.important_offset, compact, list_of(positions), what.lines, to.v,
                          nullptr);
  };
  for_each_exchange(block.columns, piece, swaps, send, release);
}

void GpuSelectiveUpdate::adopt_columns(const DeviceBlock& block, size_t piece,
                                       const std::vector<std::vector<Swap>>& swaps, float* staging) {
  const auto adopt = [&](const MatrixColumns& matrix, const Exchange& what, ColumnState from) {
    const at::Tensor positions = upload<int32_t>(what.important);
    const at::Tensor channels = upload<int32_t>(channels_at(matrix.important, what.important));
    const kernel::MatrixShape compact = matrix.important_shape();
    cuda::scatter_channels(from.master, matrix.shape, list_of(channels), what.lines,
                           block.buffers.weights.data_ptr<float>() + matrix.offset, nullptr);
    cuda::scatter_channels(from.m, compact, list_of(positions), what.lines, block.part.m + matrix.important_offset,
                           nullptr);
    cuda::scatter_channels(from.v, compact, list_of(positions), what.lines, block.part.v + matrix.important_offset,
                           nullptr);
  };
  for_each_exchange(block.columns, piece, swaps, staging, adopt);
}

}  // namespace

std::unique_ptr<SelectiveUpdate> make_gpu_selective_update(const device::Device& device,
                                                           const std::vector<BlockColumns>& columns) {
  return std::make_unique<GpuSelectiveUpdate>(device, columns);
}

}  // namespace headrace::policy::zenflow
