// Where each block's training state lies under offloading: weights and gradient buffers on the device, masters, moments
// and arrived gradients on the host; for the first blocks, if so wished, the moments on the device and nothing on the
// host. One slab a kind and tier, taken once. Built by the trainer thread; lanes then use disjoint parts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/memory/budget.h"
#include "headrace/model/block.h"
#include "headrace/optim/adamw.h"
#include "headrace/policy/tier_memory.h"
#include "headrace/policy/trained_blocks.h"

namespace headrace::policy {

// fp32, whole block: [numel] each but the moments, [state_numel].
struct HostBlock {
  float* master = nullptr;
  float* gradient = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

struct StorageShape {
  std::vector<int64_t> numel;         // of each block's flat buffer
  std::vector<int32_t> slot;          // of each block's gradient; -1: a buffer of its own
  std::vector<bool> is_device_block;  // optimizer state on the device
};

class OffloadStorage {
 public:
  // Takes all memory from `device`, charged to the budgets, and copies `weights` (one flat fp32 host tensor a block)
  // to both tiers. Moments are zero. Throws CapacityError before anything is allocated when a budget refuses.
  OffloadStorage(device::Device& device, const StorageShape& shape, const TrainedBlocks& trained,
                 const std::vector<at::Tensor>& weights, std::shared_ptr<memory::Budget> device_budget,
                 std::shared_ptr<memory::Budget> host_budget);
  OffloadStorage(const OffloadStorage&) = delete;
  OffloadStorage& operator=(const OffloadStorage&) = delete;

  // Moves masters and moments of the first `num_blocks` blocks, which is_device_block does not name yet, to the device:
  // their gradients get buffers of their own; on the host their place stays taken. Nothing may be under way. Throws
  // CapacityError; nothing is moved then.
  void move_to_device(device::Device& device, size_t num_blocks, const TrainedBlocks& trained, int64_t num_updates);
  // [bytes] of the device that this takes.
  int64_t bytes_to_move(size_t num_blocks, const TrainedBlocks& trained) const;

  // On the device; the gradient is the block's slot or its own buffer.
  const std::vector<model::BlockBuffers>& blocks() const { return blocks_; }
  // All null for a block whose optimizer state is on the device.
  const HostBlock& host(size_t block) const { return host_[block]; }
  // Moments on the device; undefined for other blocks.
  optim::AdamWState& device_state(size_t block) { return device_states_[block]; }

 private:
  void place_on_device(device::Device& device, const StorageShape& shape, const TrainedBlocks& trained);
  void place_on_host(device::Device& device, const StorageShape& shape, const TrainedBlocks& trained);

  TierMemory memory_;
  std::vector<model::BlockBuffers> blocks_;
  std::vector<HostBlock> host_;
  std::vector<optim::AdamWState> device_states_;
};

}  // namespace headrace::policy
