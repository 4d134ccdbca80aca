// An accelerator imitated on the CPU, so that offloading is real and can be measured without a GPU: compute has cores
// of its own, host workers and links have the others, and each direction of the link is as fast as it is set to be
// while it really copies. Its memory is host memory; the budget on it is counted where tensors are allocated, not here.
#pragma once

#include <memory>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/device/virtual_time.h"

namespace headrace::device {

struct EmulatedSettings {
  Cores cores{};     // both lists or neither; by default split(allowed_cores()) of the calling thread
  Rate to_device{};  // h2d
  Rate to_host{};    // d2h
};

// A copy takes at least latency + bytes / rate, counted from when a link that is never late would have begun it: after
// the direction's last copy ended late, the next may be shorter by that much (virtual_time.h). Directions share nothing
// but the machine's memory.
// Throws ConfigError for a core the calling thread may not run on, for one list without the other, or for a rate that
// is negative or not finite.
std::unique_ptr<Device> make_emulated_device(const EmulatedSettings& settings);

}  // namespace headrace::device
