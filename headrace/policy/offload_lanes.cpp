#include "headrace/policy/offload_lanes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/policy/host_update.h"

namespace headrace::policy {
namespace {

constexpr int64_t kFloat = 4;  // [bytes]

}  // namespace

OffloadLanes::OffloadLanes(std::unique_ptr<device::Device> device, TrainedBlocks trained, std::vector<Pieces> pieces,
                           std::vector<device::Pace> paces)
    : device_(std::move(device)), trained_(std::move(trained)), pieces_(std::move(pieces)), paces_(std::move(paces)) {
  for (const Pieces& block : pieces_) {
    const int64_t numel = block.back().empty() ? 0 : block.back().back().end;
    whole_blocks_.push_back(even_pieces(numel, 1));
  }
}

void OffloadLanes::run(const graph::Task& task, int32_t lane_index) {
  switch (task.kind) {
    case graph::TaskKind::kOffload:
      return copy(task, device::Direction::kToHost);
    case graph::TaskKind::kHostUpdate:
      return update(task, lane_index);
    case graph::TaskKind::kFetch:
      return copy(task, device::Direction::kToDevice);
    default:
      throw InternalError("policy.offload", graph::name_of(task) + " is no task of a link or a host worker.");
  }
}

const std::vector<Stretch>& OffloadLanes::stretches_of(const graph::Task& task) {
  const auto block = static_cast<size_t>(task.block), piece = static_cast<size_t>(std::max(0, task.piece));
  const Pieces& embedding = update_of(first_step_ + task.step).embedding;
  const bool has_own = block == 0 && !embedding.empty();
  const Pieces& pieces = has_own ? embedding : pieces_[block];
  if (task.piece == graph::kWholeBlock && pieces.size() > 1) return whole_blocks_[block].front();
  return pieces[piece];
}

void OffloadLanes::copy(const graph::Task& task, device::Direction direction) {
  const auto block = static_cast<size_t>(task.block);
  const HostBlock& host = storage_->host(block);
  const model::BlockBuffers& buffers = storage_->blocks()[block];
  const auto at = [](float* values, int64_t offset) { return reinterpret_cast<std::byte*>(values + offset); };
  for (const Stretch& stretch : stretches_of(task)) {
    const int64_t bytes = (stretch.end - stretch.begin) * kFloat;
    if (direction == device::Direction::kToHost) {
      device_->copy(direction, at(host.gradient, stretch.begin), at(buffers.gradients.data_ptr<float>(), stretch.begin),
                    bytes);
    } else {
      device_->copy(direction, at(buffers.weights.data_ptr<float>(), stretch.begin), at(host.master, stretch.begin),
                    bytes);
    }
    bytes_[static_cast<size_t>(task.lane)] += bytes;
  }
}

void OffloadLanes::update(const graph::Task& task, int32_t worker) {
  const auto block = static_cast<size_t>(task.block);
  const StepUpdate& of_step = update_of(first_step_ + task.step);
  if (of_step.is_skipped) return;
  kernel::AdamWStep step = of_step.adamw;
  step.gradient_scale = of_step.clip_factor[block];
  const auto begin = std::chrono::steady_clock::now();
  for (const Stretch& stretch : stretches_of(task)) {
    update_on_host(trained_.groups[block], storage_->host(block), stretch.begin, stretch.end, step,
                   paces_[static_cast<size_t>(worker)]);
    bytes_[static_cast<size_t>(task.lane)] += (stretch.end - stretch.begin) * kHostUpdateBytes;
  }
  host_busy_ns_ += (std::chrono::steady_clock::now() - begin).count();
}

}  // namespace headrace::policy
