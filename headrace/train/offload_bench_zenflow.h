// The offload bench's cells of the ZenFlow policy (arXiv 2505.12242): which windows a host of some speed needs, a run
// with them, and its control. The compute lane's thread.
#pragma once

#include <string>
#include <vector>

#include "headrace/train/offload_bench.h"
#include "headrace/train/offload_bench_steps.h"
#include "headrace/train/offload_bench_workload.h"

namespace headrace::train {

struct ZenflowCell {
  std::string policy;  // as in OffloadBenchRow
  bool clip = true;
  bool has_slots = true;
  int64_t update_interval = 1;  // S [steps]
  double device_share = 0;      // at least so much of the optimizer state on the device, whole blocks
  bool has_control = false;     // "zenflow-free" is measured beside it
};

bool is_zenflow(const std::string& policy);

// The policy's cell with the shortest windows that the host can follow; where none is, that of the longest and one with
// the device share that they need. A set device share gives a second cell in any case. Pure.
std::vector<ZenflowCell> zenflow_cells(const std::string& policy, bool clip, const OffloadBenchSettings& settings,
                                       const ResidentBaseline& resident);

// Whole windows, at least `least` steps, 2 S + 2, and as many as a selection of columns is apart; after all buffers of
// windows have been used. Pure.
BenchSteps zenflow_steps(int64_t update_interval, int64_t least);

// The cell's row, and that of its control. `on_cell` gets the recording of all steps, warm-up included. Throws
// CapacityError when the machine has less memory than the run needs.
std::vector<OffloadBenchRow> measure_zenflow(const BenchWorkload& workload, const ZenflowCell& cell,
                                             const ResidentBaseline& resident, const OffloadBenchSettings& settings,
                                             const StepStarts& on_step, const OffloadBenchOptions& options);

}  // namespace headrace::train
