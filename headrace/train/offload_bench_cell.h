// The measurements that the offload bench is made of: everything resident, and one cell of the offload policy. The
// compute lane's thread.
#pragma once

#include <string>

#include "headrace/train/offload_bench.h"
#include "headrace/train/offload_bench_steps.h"
#include "headrace/train/offload_bench_workload.h"

namespace headrace::train {

struct BenchCell {
  std::string policy;  // as in OffloadBenchRow
  bool clip = false;
  double device_share = 0;  // at least so much of the optimizer state on the device, whole blocks
};

// Takes the time of `steps` steps after warm-up and sets the rates from it.
ResidentBaseline measure_resident(const BenchWorkload& workload, double host_ratio, double link_share, int64_t steps,
                                  const StepStarts& on_step);

// Of a host that is as fast as the baseline says. `on_cell` gets the timed steps' recording.
OffloadBenchRow measure_cell(const BenchWorkload& workload, const BenchCell& cell, const ResidentBaseline& resident,
                             int64_t steps, const StepStarts& on_step, const OffloadBenchOptions& options);

}  // namespace headrace::train
