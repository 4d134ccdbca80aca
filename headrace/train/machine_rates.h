// What this machine does in a second, from a short trial: for the forecast by which policy auto chooses.
#pragma once

#include "headrace/device/cores.h"

namespace headrace::train {

struct MachineRates {
  double flops_per_s = 0;              // matrix products on the compute lane, with libtorch's threads as they are set
  double host_update_bytes_per_s = 0;  // of one AdamW pass by one thread on the host's cores
};

// Takes about half a second; the calling thread is the compute lane. Needs 100 MB of memory for that time.
MachineRates measure_rates(const device::Cores& cores);

}  // namespace headrace::train
