// What the links and host workers of a ZenFlow run do, and all that they touch: so that a lane which hangs past its
// deadline and is left behind finds its memory in place when it wakes. Tasks on one piece are ordered by the step
// graph's edges; the trainer thread gives each step's plan before the step begins.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/device/pace.h"
#include "headrace/graph/task_graph.h"
#include "headrace/policy/zenflow/columns.h"
#include "headrace/policy/zenflow/step_plan.h"
#include "headrace/policy/zenflow/storage.h"

namespace headrace::policy::zenflow {

class Lanes {
 public:
  // One host worker for each pace.
  Lanes(std::unique_ptr<device::Device> device, std::vector<BlockColumns> columns, const StorageSettings& settings,
        std::vector<device::Pace> paces);

  device::Device& device() { return *device_; }
  // Changed by the trainer thread alone, between steps, and only in which channel is where.
  std::vector<BlockColumns>& columns() { return columns_; }
  Storage& storage() { return *storage_; }
  const Storage& storage() const { return *storage_; }
  const StorageSettings& settings() const { return settings_; }
  // Once, before the first task. Throws like Storage.
  void make_storage(const std::vector<at::Tensor>& weights, std::shared_ptr<memory::Budget> device_budget,
                    std::shared_ptr<memory::Budget> host_budget);

  // Before the step begins. Its tasks find it by the step's number.
  void add_plan(std::shared_ptr<StepPlan> plan);
  // Of steps before this number, none of whose tasks is left.
  void drop_plans_before(int64_t number);

  // A task of a link or a host worker; called on its lane. Throws InternalError for any other, and what the device
  // does.
  void run(const graph::Task& task, int32_t lane_index);

  // [bytes] moved or touched by lanes of this kind since construction.
  int64_t bytes_of(graph::LaneKind lane) const { return bytes_[static_cast<size_t>(lane)].load(); }
  // Of them, state of columns that changed sides.
  int64_t exchanged_bytes_of(graph::LaneKind lane) const { return exchanged_[static_cast<size_t>(lane)].load(); }
  // [s] that all host workers together were at work since construction.
  double busy_s() const { return 1e-9 * static_cast<double>(host_busy_ns_.load()); }

 private:
  std::shared_ptr<const StepPlan> plan_of(int64_t number) const;
  void copy(const graph::Task& task);
  void work(const graph::Task& task, int32_t worker);
  void to_device(const float* from, int64_t slot, int64_t numel);
  void to_host(int64_t slot, float* to, int64_t numel);

  const std::unique_ptr<device::Device> device_;
  const StorageSettings settings_;
  std::vector<BlockColumns> columns_;
  std::optional<Storage> storage_;
  std::vector<device::Pace> paces_;  // by host worker
  mutable std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<const StepPlan>> plans_;  // guarded by mutex_
  std::array<std::atomic<int64_t>, graph::kNumLaneKinds> bytes_{}, exchanged_{};
  std::atomic<int64_t> host_busy_ns_ = 0;
};

}  // namespace headrace::policy::zenflow
