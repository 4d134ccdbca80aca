// How long a window should be: as short as the host can follow. Decided from what the last window took. Paper: arXiv
// 2505.12242, section 3.3; ours has a bound. Pure; any thread.
#pragma once

#include <cstdint>

namespace headrace::policy::zenflow {

struct IntervalLimits {
  int64_t smallest = 1;  // [steps] >= 1
  int64_t largest = 8;   // S_max [steps] >= smallest
};

// `host_s`: what the host works for one window of `interval` steps, all blocks, with all its workers; `step_s` > 0:
// what the device computes in a step. A longer window costs the host more, but less a step: the smallest one it can
// follow. One step shorter needs some room, so that the interval does not flutter.
int64_t choose_interval(double host_s, double step_s, int64_t interval, const IntervalLimits& limits);

}  // namespace headrace::policy::zenflow
