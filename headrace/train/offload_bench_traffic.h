// What links and host workers of a ZenFlow run do to memory, without the run: the same kernels and copies, paced alike,
// on memory of its own. Each lane's thread calls run() with its own tasks; lanes share nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/device/pace.h"
#include "headrace/device/slab.h"
#include "headrace/graph/task_graph.h"
#include "headrace/kernel/adamw_channels.h"

namespace headrace::train {

class Traffic {
 public:
  struct Settings {
    int64_t update_parts = 1;     // gradients that an update sums: S with slots, 1 with a running sum
    int32_t host_workers = 1;     // >= 1
    double host_bytes_per_s = 0;  // of all workers together
  };
  Traffic(std::unique_ptr<device::Device> device, const Settings& settings);

  const device::Device& device() const { return *device_; }

  // Touches task.bytes. A task of the links or of the host worker `lane_index`.
  void run(const graph::Task& task, int32_t lane_index);

 private:
  // Of one host worker: master, m and v, a running sum and gradients, each kNumel numbers; begins where it left off.
  struct Worker {
    device::Pace pace;
    device::Slab slab;
    std::vector<float*> arrays;
    int64_t at = 0;
  };
  struct Link {
    device::Slab near, far;  // as large as a piece, and larger than caches are
    int64_t at = 0;          // [bytes] in the far one
  };

  Worker make_worker(const Settings& settings) const;
  void copy(device::Direction direction, int64_t bytes);
  void accumulate(Worker& worker, int64_t bytes);
  void update(Worker& worker, int64_t bytes);
  void update_lines(Worker& worker, int64_t begin, int64_t numel);

  const std::unique_ptr<device::Device> device_;
  const int64_t update_parts_;
  const kernel::ChannelAdamW adamw_;
  const kernel::BiasCorrections corrections_;
  std::vector<Worker> workers_;
  Link to_device_, to_host_;
};

}  // namespace headrace::train
