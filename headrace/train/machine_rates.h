// What this machine does in a second, from a short trial: for the forecast by which policy auto chooses.
#pragma once

#include "headrace/device/device.h"

namespace headrace::train {

struct MachineRates {
  double flops_per_s = 0;              // matrix products on the compute lane, with libtorch's threads as they are set
  double host_update_bytes_per_s = 0;  // of one AdamW pass by one thread on the host's cores
};

// Takes about half a second; the calling thread is the compute lane. Needs 100 MB of the host's memory for that time,
// and 200 MB of a GPU's.
MachineRates measure_rates(device::Device& device);

}  // namespace headrace::train
