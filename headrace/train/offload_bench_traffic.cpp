#include "headrace/train/offload_bench_traffic.h"

#include <algorithm>
#include <span>

#include "headrace/policy/zenflow/deferred_update.h"

namespace headrace::train {
namespace {

using device::Direction;
using device::Tier;
using graph::LaneKind;
using graph::TaskKind;

constexpr int64_t kFloat = 4;                     // [bytes]
constexpr int64_t kNumel = int64_t{4} << 20;      // of each array of a worker
constexpr int64_t kWidth = 512;                   // of its lines
constexpr int64_t kNearBytes = int64_t{4} << 20;  // as a buffer of ZenFlow's rings
constexpr int64_t kFarBytes = int64_t{128} << 20;
constexpr size_t kMaster = 0, kM = 1, kV = 2, kSum = 3, kGradients = 4;  // arrays of a worker

std::span<float> part(float* values, int64_t begin, int64_t numel) {
  return {values + begin, static_cast<size_t>(numel)};
}

device::Slab make_slab(device::Device& device, Tier tier, int64_t bytes) {
  device::Slab slab = device.allocate(tier, bytes);
  std::fill_n(reinterpret_cast<float*>(slab.data()), bytes / kFloat, 1e-3F);
  return slab;
}

// Calls body(begin, numel) for whole lines that sum to about `bytes`, each call no more than keeps the pace smooth.
template <class Body>
void for_lines(int64_t& at, int64_t bytes, int64_t touched, const Body& body) {
  const int64_t chunk = std::max<int64_t>(1, device::Pace::kPieceBytes / (touched * kWidth)) * kWidth;
  for (int64_t left = (bytes / touched + kWidth - 1) / kWidth * kWidth; left > 0;) {
    const int64_t numel = std::min({left, chunk, kNumel - at});
    body(at, numel);
    at = (at + numel) % kNumel;
    left -= numel;
  }
}

}  // namespace

Traffic::Traffic(std::unique_ptr<device::Device> device, const Settings& settings)
    : device_(std::move(device)),
      update_parts_(settings.update_parts),
      corrections_(kernel::bias_corrections(adamw_, std::vector<int64_t>(kWidth, 1000))),
      to_device_{make_slab(*device_, Tier::kDevice, kNearBytes), make_slab(*device_, Tier::kHost, kFarBytes)},
      to_host_{make_slab(*device_, Tier::kDevice, kNearBytes), make_slab(*device_, Tier::kHost, kFarBytes)} {
  for (int32_t i = 0; i < settings.host_workers; ++i) workers_.push_back(make_worker(settings));
}

Traffic::Worker Traffic::make_worker(const Settings& settings) const {
  const auto num_arrays = static_cast<int64_t>(kGradients) + settings.update_parts;
  Worker worker{.pace = device::Pace({.bytes_per_s = settings.host_bytes_per_s / settings.host_workers}),
                .slab = make_slab(*device_, Tier::kHost, num_arrays * kNumel * kFloat),
                .arrays = {}};
  for (int64_t i = 0; i < num_arrays; ++i) {
    worker.arrays.push_back(reinterpret_cast<float*>(worker.slab.data()) + i * kNumel);
  }
  return worker;
}

void Traffic::run(const graph::Task& task, int32_t lane_index) {
  if (task.lane == LaneKind::kH2d) return copy(Direction::kToDevice, task.bytes);
  if (task.lane == LaneKind::kD2h) return copy(Direction::kToHost, task.bytes);
  Worker& worker = workers_[static_cast<size_t>(lane_index)];
  worker.pace.begin();
  task.kind == TaskKind::kAccumulate ? accumulate(worker, task.bytes) : update(worker, task.bytes);
}

void Traffic::copy(Direction direction, int64_t bytes) {
  Link& link = direction == Direction::kToDevice ? to_device_ : to_host_;
  while (bytes > 0) {
    const int64_t numel = std::min({bytes, kNearBytes, kFarBytes - link.at});
    std::byte* far = link.far.data() + link.at;
    const bool is_up = direction == Direction::kToDevice;
    device_->copy(direction, is_up ? link.near.data() : far, is_up ? far : link.near.data(), numel);
    link.at = (link.at + numel) % kFarBytes;
    bytes -= numel;
  }
}

void Traffic::accumulate(Worker& worker, int64_t bytes) {
  const int64_t touched = policy::zenflow::accumulate_bytes(/*is_first=*/false);
  for_lines(worker.at, bytes, touched, [&](int64_t begin, int64_t numel) {
    const std::span<const float> gradient = part(worker.arrays[kGradients], begin, numel);
    kernel::accumulate_gradient(part(worker.arrays[kSum], begin, numel), gradient, 0.5F, /*is_first=*/false);
    worker.pace.moved(numel * touched);
  });
}

void Traffic::update(Worker& worker, int64_t bytes) {
  const int64_t touched = policy::zenflow::window_update_bytes(update_parts_);
  for_lines(worker.at, bytes, touched, [&](int64_t begin, int64_t numel) {
    update_lines(worker, begin, numel);
    worker.pace.moved(numel * touched);
  });
}

void Traffic::update_lines(Worker& worker, int64_t begin, int64_t numel) {
  std::vector<kernel::WindowSlot> slots;
  for (size_t i = kGradients; i < worker.arrays.size(); ++i) {
    slots.push_back({std::span<const float>(part(worker.arrays[i], begin, numel)), 1});
  }
  const auto state = [&](size_t array) { return part(worker.arrays[array], begin, numel); };
  kernel::adamw_update_channels({state(kMaster), state(kM), state(kV)}, {slots, 1 / static_cast<float>(update_parts_)},
                                {kNumel / kWidth, kWidth, kernel::Axis::kColumns}, {0, numel / kWidth}, corrections_,
                                adamw_);
}

}  // namespace headrace::train
