// What policies with lanes share: the lanes' threads and where they run, the device's working memory, what a recorded
// run waited for. Called by the trainer thread.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/base/json.h"
#include "headrace/device/device.h"
#include "headrace/graph/executor.h"
#include "headrace/memory/arena.h"
#include "headrace/memory/budget.h"

namespace headrace::policy {

// One lane for compute and for each direction of the link, `host_workers` for host updates; all but compute run on the
// host's cores, each worker on one of them.
graph::ExecutorSettings lane_settings(const device::Cores& cores, int32_t host_workers, double deadline_s,
                                      int64_t recorded_steps);

// For activations and workspace: what the budget has left, or as much as the machine has when it has no limit. On a GPU
// libtorch's own allocator is held to that instead, and there is no arena. Throws CapacityError when nothing is left.
std::shared_ptr<memory::Arena> make_device_arena(const device::Device& device,
                                                 const std::shared_ptr<memory::Budget>& budget);

// Again after more of a GPU's budget was taken; elsewhere the arena's tensors are charged to it one by one.
void hold_gpu_to(const device::Device& device, const memory::Budget& budget);

// [bytes] that activations and workspace have taken so far at most: of the arena, or of the GPU without one.
int64_t taken_by_compute(const std::shared_ptr<memory::Arena>& arena);
// The budget's report; what libtorch holds of a GPU counts as workspace.
Json device_memory_report(const memory::Budget& budget, const std::shared_ptr<memory::Arena>& arena);

// {"window_s": .., "idle_s": .., "by_reason": [{"reason": .., "s": ..}, ..]} from the first recorded step's data to the
// last one's end.
OrderedJson stall_report(const graph::Recording& recorded);

}  // namespace headrace::policy
