#include "headrace/policy/offload_storage.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/policy/device_tensor.h"

namespace headrace::policy {
namespace {

constexpr int64_t kFloat = 4;  // [bytes]

int64_t num_slots(const StorageShape& shape) {
  return shape.slot.empty() ? 0 : 1 + *std::max_element(shape.slot.begin(), shape.slot.end());
}

// [numbers] of each gradient slot: the largest block that uses it.
std::vector<int64_t> slot_sizes(const StorageShape& shape) {
  std::vector<int64_t> sizes(static_cast<size_t>(num_slots(shape)), 0);
  for (size_t i = 0; i < shape.numel.size(); ++i) {
    if (shape.slot[i] < 0) continue;
    int64_t& size = sizes[static_cast<size_t>(shape.slot[i])];
    size = std::max(size, shape.numel[i]);
  }
  return sizes;
}

}  // namespace

OffloadStorage::OffloadStorage(device::Device& device, const StorageShape& shape, const TrainedBlocks& trained,
                               const std::vector<at::Tensor>& weights, std::shared_ptr<memory::Budget> device_budget,
                               std::shared_ptr<memory::Budget> host_budget)
    : memory_(std::move(device_budget), std::move(host_budget)) {
  place_on_device(device, shape, trained);
  place_on_host(device, shape, trained);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto bytes = shape.numel[i] * kFloat;
    const auto* from = weights[i].const_data_ptr<float>();
    auto* to = blocks_[i].weights.data_ptr<float>();
    device.copy(device::Direction::kToDevice, reinterpret_cast<std::byte*>(to),
                reinterpret_cast<const std::byte*>(from), bytes);
    if (host_[i].master != nullptr) std::memcpy(host_[i].master, from, static_cast<size_t>(bytes));
  }
  device.finish_compute();  // moments are zeros
}

void OffloadStorage::place_on_device(device::Device& device, const StorageShape& shape, const TrainedBlocks& trained) {
  const std::vector<int64_t> slots = slot_sizes(shape);
  int64_t weights = 0, gradients = 0, states = 0;
  for (const int64_t size : slots) gradients += aligned_numel(size);
  for (size_t i = 0; i < shape.numel.size(); ++i) {
    weights += aligned_numel(shape.numel[i]);
    if (shape.slot[i] < 0) gradients += aligned_numel(shape.numel[i]);
    if (shape.is_device_block[i]) states += aligned_numel(trained.groups[i].state_numel);
  }
  Cursor weight(memory_.take(device, device::Tier::kDevice, memory::Kind::kWeight, weights));
  Cursor gradient(memory_.take(device, device::Tier::kDevice, memory::Kind::kGradient, gradients));
  Cursor m(memory_.take(device, device::Tier::kDevice, memory::Kind::kM, states));
  Cursor v(memory_.take(device, device::Tier::kDevice, memory::Kind::kV, states));
  std::vector<float*> slot_at;
  for (const int64_t size : slots) slot_at.push_back(gradient.next(size));
  for (size_t i = 0; i < shape.numel.size(); ++i) {
    float* own = shape.slot[i] < 0 ? gradient.next(shape.numel[i]) : slot_at[static_cast<size_t>(shape.slot[i])];
    blocks_.push_back(
        {tensor_at(device, weight.next(shape.numel[i]), shape.numel[i]), tensor_at(device, own, shape.numel[i])});
    device_states_.emplace_back();
    if (!shape.is_device_block[i]) continue;
    const int64_t numel = trained.groups[i].state_numel;
    device_states_.back() = {tensor_at(device, m.next(numel), numel).zero_(),
                             tensor_at(device, v.next(numel), numel).zero_(), 0};
  }
}

void OffloadStorage::place_on_host(device::Device& device, const StorageShape& shape, const TrainedBlocks& trained) {
  int64_t numbers = 0, states = 0;
  for (size_t i = 0; i < shape.numel.size(); ++i) {
    if (shape.is_device_block[i]) continue;
    numbers += aligned_numel(shape.numel[i]);
    states += aligned_numel(trained.groups[i].state_numel);
  }
  Cursor master(memory_.take(device, device::Tier::kHost, memory::Kind::kMaster, numbers));
  Cursor gradient(memory_.take(device, device::Tier::kHost, memory::Kind::kGradient, numbers));
  Cursor m(memory_.take(device, device::Tier::kHost, memory::Kind::kM, states));
  Cursor v(memory_.take(device, device::Tier::kHost, memory::Kind::kV, states));
  for (size_t i = 0; i < shape.numel.size(); ++i) {
    host_.emplace_back();
    if (shape.is_device_block[i]) continue;
    const int64_t state = trained.groups[i].state_numel;
    host_.back() = {master.next(shape.numel[i]), gradient.next(shape.numel[i]), m.next(state), v.next(state)};
    std::fill_n(host_.back().m, state, 0.0F);
    std::fill_n(host_.back().v, state, 0.0F);
  }
}

int64_t OffloadStorage::bytes_to_move(size_t num_blocks, const TrainedBlocks& trained) const {
  int64_t numbers = 0;
  for (size_t i = 0; i < num_blocks; ++i) {
    if (host_[i].master != nullptr) {
      numbers += aligned_numel(blocks_[i].weights.numel()) + 2 * aligned_numel(trained.groups[i].state_numel);
    }
  }
  return numbers * kFloat;
}

void OffloadStorage::move_to_device(device::Device& device, size_t num_blocks, const TrainedBlocks& trained,
                                    int64_t num_updates) {
  int64_t numbers = 0, states = 0;
  for (size_t i = 0; i < num_blocks; ++i) {
    if (host_[i].master == nullptr) continue;
    numbers += aligned_numel(blocks_[i].weights.numel());
    states += aligned_numel(trained.groups[i].state_numel);
  }
  Cursor gradient(memory_.take(device, device::Tier::kDevice, memory::Kind::kGradient, numbers));
  Cursor m(memory_.take(device, device::Tier::kDevice, memory::Kind::kM, states));
  Cursor v(memory_.take(device, device::Tier::kDevice, memory::Kind::kV, states));
  const auto moved = [&](Cursor& cursor, const float* from, int64_t numel) {
    float* to = cursor.next(numel);
    device.copy(device::Direction::kToDevice, reinterpret_cast<std::byte*>(to),
                reinterpret_cast<const std::byte*>(from), numel * kFloat);
    return tensor_at(device, to, numel);
  };
  for (size_t i = 0; i < num_blocks; ++i) {
    if (host_[i].master == nullptr) continue;
    const int64_t numel = blocks_[i].weights.numel(), state = trained.groups[i].state_numel;
    blocks_[i].gradients = tensor_at(device, gradient.next(numel), numel);
    device_states_[i] = {moved(m, host_[i].m, state), moved(v, host_[i].v, state), num_updates};
    host_[i] = {};  // the weights on the device are the masters now
  }
}

}  // namespace headrace::policy
