// Where ZenFlow's training state lies. Device: weights, the gradient under way, the important part's gradient and
// moments, and two rings of buffers of one piece each, for what goes down and what comes up. Host: the deferred part's
// masters and moments, the gradients of its windows, and what crosses when columns change sides. One slab a kind and
// tier, taken once. Built by the trainer thread; tasks then use disjoint parts, ordered by the step graph.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/memory/budget.h"
#include "headrace/model/block.h"
#include "headrace/policy/tier_memory.h"
#include "headrace/policy/zenflow/columns.h"

namespace headrace::policy::zenflow {

// Master and moments of some columns, or of a part of a block, compact.
struct ColumnState {
  float* master = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

// The important part; masters are the weights themselves.
struct ImportantPart {
  float* gradient = nullptr;  // of this step
  float* m = nullptr;
  float* v = nullptr;
};

struct DeferredPart {
  ColumnState state;
  std::vector<float*> gradients;  // slots; or two running sums
  float* arrival = nullptr;       // with running sums: where this step's gradient arrives
  float* leaving = nullptr;       // state of columns that left the device, by piece: master, m, v one after the other
  float* coming = nullptr;        // likewise of columns on their way to the device
};

struct StorageSettings {
  int32_t num_gradients = 0;     // slots, or 2 with a running sum
  bool has_arrival = false;      // a buffer besides them: with a running sum
  bool shares_gradient = false;  // blocks share one buffer for the whole gradient under way
  bool is_tied = false;          // block 0 then has its own
  int32_t send_slots = 4, staging_slots = 4;
};

class Storage {
 public:
  // Takes all memory from `device`, charged to the budgets, and copies `weights` (one flat fp32 host tensor a block) to
  // where they belong. Moments are zero. Throws CapacityError when a budget refuses.
  Storage(device::Device& device, const std::vector<BlockColumns>& columns, const StorageSettings& settings,
          const std::vector<at::Tensor>& weights, std::shared_ptr<memory::Budget> device_budget,
          std::shared_ptr<memory::Budget> host_budget);

  const std::vector<model::BlockBuffers>& blocks() const { return blocks_; }
  const ImportantPart& important(size_t block) const { return important_[block]; }
  const DeferredPart& deferred(size_t block) const { return deferred_[block]; }
  float* send_slot(int64_t slot) const { return send_[static_cast<size_t>(slot)]; }
  float* staging_slot(int64_t slot) const { return staging_[static_cast<size_t>(slot)]; }

 private:
  void place_on_device(device::Device& device, const std::vector<BlockColumns>& columns,
                       const StorageSettings& settings, const std::vector<at::Tensor>& weights);
  void place_on_host(device::Device& device, const std::vector<BlockColumns>& columns, const StorageSettings& settings);
  void place_rings(device::Device& device, const std::vector<BlockColumns>& columns, const StorageSettings& settings);
  void fill(device::Device& device, const std::vector<BlockColumns>& columns, const std::vector<at::Tensor>& weights);

  TierMemory memory_;
  std::vector<model::BlockBuffers> blocks_;
  std::vector<ImportantPart> important_;
  std::vector<DeferredPart> deferred_;
  std::vector<float*> send_, staging_;
};

// [numbers] of the block's largest piece, or of the state of its columns that change sides.
int64_t largest_in_ring(const BlockColumns& block);
// [numbers] of `leaving`, and of `coming`, for any swaps of the block.
int64_t exchange_room(const BlockColumns& block);
// [numbers] before the piece's part of them.
int64_t exchange_offset(const BlockColumns& block, size_t piece);

}  // namespace headrace::policy::zenflow
