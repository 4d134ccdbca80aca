// What all cells of the offload bench share: how steps are run, what a recording says of them, and the recorded graph
// in virtual time. The compute lane's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/graph/cost_table.h"
#include "headrace/graph/executor.h"
#include "headrace/policy/policy.h"
#include "headrace/policy/trained_blocks.h"
#include "headrace/train/offload_bench.h"
#include "headrace/train/offload_bench_workload.h"

namespace headrace::train {

using StepStarts = std::function<void(int64_t step, int64_t num_steps)>;

struct BenchSteps {
  int64_t warm_up = 2;  // the first touches memory, the second finds lanes at work
  int64_t timed = 1;
  int64_t all() const { return warm_up + timed; }
};

inline constexpr int64_t kFloatBytes = 4;

policy::OptimizerSettings bench_optimizer(bool clip);

policy::StepResult bench_step(policy::Policy& policy, const BenchWorkload& workload, int64_t step);

// `seconds` gets the time of each timed step.
void run_steps(policy::Policy& policy, const BenchWorkload& workload, const BenchSteps& steps,
               const StepStarts& on_step, std::vector<double>* seconds = nullptr);

// From the end of the recording's first `untimed` >= 1 steps to that of its last.
graph::Window timed_window(const graph::TaskGraph& graph, const graph::Timeline& timeline, int64_t untimed);

// [s] that tasks of this kind worked on the compute lane within the window.
double compute_busy_s(const graph::Recording& recording, const graph::Window& window, graph::TaskKind kind);

// Times, stall and work of the timed steps into the row.
void add_times(const graph::Recording& recording, int64_t untimed, OffloadBenchRow& row);

// Lanes as fast as they were set.
graph::CostTable with_set_rates(graph::CostTable costs, const ResidentBaseline& resident, int64_t host_workers);

// The recorded steps themselves in virtual time into the row: with their own measured costs, and with ideal lanes.
void add_forecasts(const graph::Recording& recording, int64_t untimed, int64_t host_workers, OffloadBenchRow& row);

// The first blocks that hold at least this share of the optimizer state.
int32_t num_device_blocks(const policy::TrainedBlocks& trained, double share);

}  // namespace headrace::train
