// What the links and host workers of an offloaded run do, and all that they touch: so that a lane which hangs past its
// deadline and is left behind finds its memory in place when it wakes. Tasks of one stretch of a block are ordered by
// the step graph's edges; the trainer thread builds it and writes a step's update before the step begins.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/device/pace.h"
#include "headrace/graph/task_graph.h"
#include "headrace/kernel/adamw.h"
#include "headrace/policy/block_pieces.h"
#include "headrace/policy/offload_storage.h"
#include "headrace/policy/trained_blocks.h"

namespace headrace::policy {

// What the host workers need to know of a step.
struct StepUpdate {
  kernel::AdamWStep adamw;
  std::vector<float> clip_factor;  // by block
  Pieces embedding;                // of block 0 in this step; empty: as in every step
  bool is_skipped = false;         // nothing is updated; known before the first update
};

class OffloadLanes {
 public:
  // One worker for each pace. `pieces` by block.
  OffloadLanes(std::unique_ptr<device::Device> device, TrainedBlocks trained, std::vector<Pieces> pieces,
               std::vector<device::Pace> paces);

  device::Device& device() { return *device_; }
  OffloadStorage& storage() { return *storage_; }
  const OffloadStorage& storage() const { return *storage_; }
  // Once, before the first task.
  template <class... Arguments>
  void make_storage(Arguments&&... arguments) {
    storage_.emplace(*device_, std::forward<Arguments>(arguments)...);
  }

  // Tasks count their steps from this one on; nothing is under way.
  void count_from(int64_t first_step) { first_step_ = first_step; }
  // Two are kept, since a step's updates may run during the next step's forward.
  StepUpdate& update_of(int64_t step) { return updates_[static_cast<size_t>(step % 2)]; }

  // A kOffload, kHostUpdate or kFetch; called on its lane. Throws InternalError for any other, and what the device
  // does.
  void run(const graph::Task& task, int32_t lane_index);

  // [bytes] moved or touched by lanes of this kind since construction.
  int64_t bytes_of(graph::LaneKind lane) const { return bytes_[static_cast<size_t>(lane)].load(); }
  // [s] that all host workers together were at work since the call before.
  double take_busy_s() { return 1e-9 * static_cast<double>(host_busy_ns_.exchange(0)); }

 private:
  void copy(const graph::Task& task, device::Direction direction);
  void update(const graph::Task& task, int32_t worker);
  const std::vector<Stretch>& stretches_of(const graph::Task& task);

  const std::unique_ptr<device::Device> device_;
  const TrainedBlocks trained_;
  std::optional<OffloadStorage> storage_;
  std::vector<Pieces> pieces_, whole_blocks_;  // by block
  std::vector<device::Pace> paces_;            // by host worker
  std::array<StepUpdate, 2> updates_;
  int64_t first_step_ = 0;
  std::array<std::atomic<int64_t>, graph::kNumLaneKinds> bytes_{};
  std::atomic<int64_t> host_busy_ns_ = 0;
};

}  // namespace headrace::policy
