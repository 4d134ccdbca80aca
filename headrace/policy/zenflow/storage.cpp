#include "headrace/policy/zenflow/storage.h"

#include <algorithm>

#include "headrace/policy/device_tensor.h"

namespace headrace::policy::zenflow {
namespace {

using device::Tier;
using memory::Kind;

constexpr int64_t kFloat = 4;   // [bytes]
constexpr int64_t kStates = 3;  // master, m, v

template <class Numel>
int64_t sum_over(const std::vector<BlockColumns>& columns, const Numel& numel) {
  int64_t sum = 0;
  for (const BlockColumns& block : columns) sum += aligned_numel(numel(block));
  return sum;
}

int64_t important_numel(const BlockColumns& block) { return block.important_numel; }
int64_t deferred_numel(const BlockColumns& block) { return block.deferred_numel; }

}  // namespace

int64_t exchange_offset(const BlockColumns& block, size_t piece) {
  int64_t numel = 0;
  for (size_t i = 0; i < piece; ++i) numel += aligned_numel(kStates * block.largest_exchange_numel(block.pieces[i]));
  return numel;
}

int64_t largest_in_ring(const BlockColumns& block) {
  int64_t largest = 0;
  for (const Piece& piece : block.pieces) {
    largest = std::max({largest, piece.end - piece.begin, kStates * block.largest_exchange_numel(piece)});
  }
  return largest;
}

int64_t exchange_room(const BlockColumns& block) { return exchange_offset(block, block.pieces.size()); }

Storage::Storage(device::Device& device, const std::vector<BlockColumns>& columns, const StorageSettings& settings,
                 const std::vector<at::Tensor>& weights, std::shared_ptr<memory::Budget> device_budget,
                 std::shared_ptr<memory::Budget> host_budget)
    : memory_(std::move(device_budget), std::move(host_budget)) {
  place_on_device(device, columns, settings, weights);
  place_rings(device, columns, settings);
  place_on_host(device, columns, settings);
  fill(device, columns, weights);
}

void Storage::place_on_device(device::Device& device, const std::vector<BlockColumns>& columns,
                              const StorageSettings& settings, const std::vector<at::Tensor>& weights) {
  const auto has_own = [&](size_t block) { return !settings.shares_gradient || (block == 0 && settings.is_tied); };
  int64_t numbers = 0, gradients = 0, shared = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t numel = aligned_numel(weights[i].numel());
    numbers += numel;
    has_own(i) ? gradients += numel : shared = std::max(shared, numel);
  }
  const int64_t important = sum_over(columns, important_numel);
  Cursor weight(memory_.take(device, Tier::kDevice, Kind::kWeight, numbers));
  Cursor gradient(memory_.take(device, Tier::kDevice, Kind::kGradient, gradients + shared + important));
  Cursor m(memory_.take(device, Tier::kDevice, Kind::kM, important));
  Cursor v(memory_.take(device, Tier::kDevice, Kind::kV, important));
  float* of_all = gradient.next(shared);
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t numel = weights[i].numel(), part = columns[i].important_numel;
    blocks_.push_back({tensor_at(device, weight.next(numel), numel),
                       tensor_at(device, has_own(i) ? gradient.next(numel) : of_all, numel)});
    important_.push_back({gradient.next(part), m.next(part), v.next(part)});
    tensor_at(device, important_.back().m, part).zero_();
    tensor_at(device, important_.back().v, part).zero_();
  }
}

// Each buffer holds any piece, and the state of any columns of a piece that change sides.
void Storage::place_rings(device::Device& device, const std::vector<BlockColumns>& columns,
                          const StorageSettings& settings) {
  int64_t largest = 0;
  for (const BlockColumns& block : columns) largest = std::max(largest, largest_in_ring(block));
  const int64_t slots = largest > 0 ? settings.send_slots + settings.staging_slots : 0;
  Cursor slot(memory_.take(device, Tier::kDevice, Kind::kWorkspace, slots * aligned_numel(largest)));
  for (int64_t i = 0; i < slots; ++i) (i < settings.send_slots ? send_ : staging_).push_back(slot.next(largest));
}

void Storage::place_on_host(device::Device& device, const std::vector<BlockColumns>& columns,
                            const StorageSettings& settings) {
  const int64_t numbers = sum_over(columns, deferred_numel), exchange = sum_over(columns, exchange_room);
  Cursor master(memory_.take(device, Tier::kHost, Kind::kMaster, numbers));
  Cursor m(memory_.take(device, Tier::kHost, Kind::kM, numbers));
  Cursor v(memory_.take(device, Tier::kHost, Kind::kV, numbers));
  const Kind kind = settings.has_arrival ? Kind::kAccumulator : Kind::kGradient;
  Cursor gradient(memory_.take(device, Tier::kHost, kind, numbers * settings.num_gradients));
  Cursor arrival(memory_.take(device, Tier::kHost, Kind::kGradient, settings.has_arrival ? numbers : 0));
  Cursor crossing(memory_.take(device, Tier::kHost, Kind::kWorkspace, 2 * exchange));
  for (const BlockColumns& block : columns) {
    const int64_t numel = block.deferred_numel;
    DeferredPart part{.state = {master.next(numel), m.next(numel), v.next(numel)}, .gradients = {}};
    std::fill_n(part.state.m, numel, 0.0F);
    std::fill_n(part.state.v, numel, 0.0F);
    for (int32_t i = 0; i < settings.num_gradients; ++i) part.gradients.push_back(gradient.next(numel));
    if (settings.has_arrival) part.arrival = arrival.next(numel);
    part.leaving = crossing.next(exchange_room(block));
    part.coming = crossing.next(exchange_room(block));
    deferred_.push_back(std::move(part));
  }
}

void Storage::fill(device::Device& device, const std::vector<BlockColumns>& columns,
                   const std::vector<at::Tensor>& weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto* from = weights[i].const_data_ptr<float>();
    device.copy(device::Direction::kToDevice, reinterpret_cast<std::byte*>(blocks_[i].weights.data_ptr<float>()),
                reinterpret_cast<const std::byte*>(from), weights[i].numel() * kFloat);
    for (const MatrixColumns& matrix : columns[i].matrices) {
      const auto elements = static_cast<size_t>(matrix.shape.num_elements());
      const auto numel = static_cast<size_t>(matrix.num_deferred_lines() * matrix.deferred_line_width());
      kernel::gather_channels({from + matrix.offset, elements}, matrix.shape, matrix.deferred,
                              {0, matrix.num_deferred_lines()},
                              {deferred_[i].state.master + matrix.deferred_offset, numel});
    }
  }
  device.finish_compute();  // moments are zeros
}

}  // namespace headrace::policy::zenflow
