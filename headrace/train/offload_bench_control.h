// The control of a ZenFlow cell: resident steps while links and host workers do what they did in its timed steps, and
// nobody waits for them. What it takes longer than without them is what sharing one memory costs on the emulated
// device. The calling thread is the compute lane; lanes are an executor's of its own.
#pragma once

#include "headrace/graph/task_graph.h"
#include "headrace/train/offload_bench.h"
#include "headrace/train/offload_bench_steps.h"
#include "headrace/train/offload_bench_workload.h"

namespace headrace::train {

// `zenflow`: the cell's row; `ran`: the graph of all its steps. Each task of a link or a host worker is done at the
// same pace on as many bytes of other memory: copies, sums and AdamW updates. `on_cell` gets the recording, each
// resident step one forward of block 0.
OffloadBenchRow measure_control(const BenchWorkload& workload, const OffloadBenchRow& zenflow,
                                const graph::TaskGraph& ran, const BenchSteps& steps, const StepStarts& on_step,
                                const OffloadBenchOptions& options);

}  // namespace headrace::train
