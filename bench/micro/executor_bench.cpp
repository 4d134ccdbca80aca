// What handing a step's tasks to the lanes costs, and what keeping their times for a trace adds: the exact step of a
// 32-layer model, empty tasks. A task's two time stamps are always taken; what a trace needs is that they are kept.
// Google Benchmark: --benchmark_repetitions=9 --benchmark_format=json.
#include <benchmark/benchmark.h>

#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/executor.h"

namespace {

namespace graph = headrace::graph;

constexpr int64_t kSteps = 64;  // of one run; a trace keeps them all

graph::StepGraph exact_step() {
  graph::StepShape shape;
  shape.blocks.assign(34, {.weight_bytes = 1, .gradient_bytes = 1, .update_bytes = 1, .num_pieces = 2});
  shape.clip = true;
  return graph::exact_overlap_step(shape);
}

// Argument: steps that are kept for a trace.
void run_steps(benchmark::State& state) {
  const graph::StepGraph step = exact_step();
  graph::ExecutorSettings settings;
  settings.recorded_steps = state.range(0);
  settings.num_lanes[static_cast<size_t>(graph::LaneKind::kCompute)] = 1;
  for (const graph::LaneKind lane : {graph::LaneKind::kH2d, graph::LaneKind::kD2h, graph::LaneKind::kHostUpdate}) {
    settings.num_lanes[static_cast<size_t>(lane)] = 1;
  }
  for ([[maybe_unused]] auto _ : state) {
    graph::Executor executor(settings, [](const graph::Task&, int32_t) {});
    for (int64_t i = 0; i < kSteps; ++i) executor.run_step(step);
    executor.drain();
  }
  state.counters["tasks"] = static_cast<double>(step.graph.tasks.size());
  state.counters["s_per_step"] =
      benchmark::Counter(kSteps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(run_steps)->Arg(0)->Arg(kSteps)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
