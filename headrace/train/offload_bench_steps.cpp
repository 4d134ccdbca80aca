#include "headrace/train/offload_bench_steps.h"

#include <algorithm>
#include <chrono>

#include "headrace/graph/measured_costs.h"
#include "headrace/graph/simulator.h"

namespace headrace::train {
namespace {

constexpr double kClip = 1, kLearningRate = 1e-5;

using graph::LaneKind;
using graph::TaskKind;

StepForecast forecast(graph::TaskGraph graph, const graph::CostTable& costs, int64_t untimed) {
  graph::assign_costs(graph, costs);
  const graph::Timeline timeline = graph::simulate(graph);
  const graph::Window window = timed_window(graph, timeline, untimed);
  const auto steps = static_cast<double>(graph::step_ends_ns(graph, timeline).size()) - static_cast<double>(untimed);
  return {graph::to_seconds(window.length_ns()) / steps, graph::attribute_stall(graph, timeline, window).share()};
}

}  // namespace

policy::OptimizerSettings bench_optimizer(bool clip) { return {.weight_decay = 0.01, .clip = clip ? kClip : 0}; }

policy::StepResult bench_step(policy::Policy& policy, const BenchWorkload& workload, int64_t step) {
  return policy.step({step, workload.micro_batches(), kLearningRate, /*next=*/workload.micro_batches()});
}

void run_steps(policy::Policy& policy, const BenchWorkload& workload, const BenchSteps& steps,
               const StepStarts& on_step, std::vector<double>* seconds) {
  for (int64_t step = 0; step < steps.all(); ++step) {
    on_step(step, steps.all());
    const auto begin = std::chrono::steady_clock::now();
    bench_step(policy, workload, step);
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (seconds != nullptr && step >= steps.warm_up) seconds->push_back(s);
  }
}

graph::Window timed_window(const graph::TaskGraph& graph, const graph::Timeline& timeline, int64_t untimed) {
  const std::vector<int64_t> ends = graph::step_ends_ns(graph, timeline);
  return {.begin_ns = ends[static_cast<size_t>(untimed - 1)], .end_ns = ends.back()};
}

double compute_busy_s(const graph::Recording& recording, const graph::Window& window, TaskKind kind) {
  int64_t ns = 0;
  for (size_t i = 0; i < recording.graph.tasks.size(); ++i) {
    const graph::Task& task = recording.graph.tasks[i];
    const graph::TaskRun& run = recording.timeline.runs[i];
    if (task.kind != kind || task.lane != LaneKind::kCompute) continue;
    ns += std::max<int64_t>(0, std::min(run.end_ns, window.end_ns) - std::max(run.start_ns, window.begin_ns));
  }
  return graph::to_seconds(ns);
}

void add_times(const graph::Recording& recording, int64_t untimed, OffloadBenchRow& row) {
  const graph::Window window = timed_window(recording.graph, recording.timeline, untimed);
  const std::vector<int64_t> ends = graph::step_ends_ns(recording.graph, recording.timeline);
  for (auto i = static_cast<size_t>(untimed); i < ends.size(); ++i) {
    row.step_times_s.push_back(graph::to_seconds(ends[i] - ends[i - 1]));
  }
  const auto steps = static_cast<double>(row.step_times_s.size());
  row.step_time_s = graph::to_seconds(window.length_ns()) / steps;
  row.stall = graph::attribute_stall(recording.graph, recording.timeline, window);
  const auto busy_s = [&](TaskKind kind) { return compute_busy_s(recording, window, kind) / steps; };
  row.work = {
      .forward_s = busy_s(TaskKind::kForward),
      .backward_s = busy_s(TaskKind::kBackward),
      .reduce_s = busy_s(TaskKind::kReduce),
      .device_update_s = busy_s(TaskKind::kDeviceUpdate),
      .merge_s = busy_s(TaskKind::kMerge),
      .exchange_s = busy_s(TaskKind::kRelease) + busy_s(TaskKind::kAdopt),
      .host_s = graph::to_seconds(graph::busy_ns(recording.graph, recording.timeline, LaneKind::kHostUpdate, window)) /
                steps};
}

graph::CostTable with_set_rates(graph::CostTable costs, const ResidentBaseline& resident, int64_t host_workers) {
  costs.of(LaneKind::kH2d) = {.seconds_per_byte = 1 / resident.link_bytes_per_s};
  costs.of(LaneKind::kD2h) = costs.of(LaneKind::kH2d);
  costs.of(LaneKind::kHostUpdate) = {.seconds_per_byte = static_cast<double>(host_workers) / resident.host_bytes_per_s};
  return costs;
}

void add_forecasts(const graph::Recording& recording, int64_t untimed, int64_t host_workers, OffloadBenchRow& row) {
  const graph::Window window = timed_window(recording.graph, recording.timeline, untimed);
  const graph::CostTable costs = graph::measured_costs(recording.graph, recording.timeline, window);
  row.predicted = forecast(recording.graph, costs, untimed);
  row.ideal = forecast(recording.graph, with_set_rates(costs, row.resident, host_workers), untimed);
}

int32_t num_device_blocks(const policy::TrainedBlocks& trained, double share) {
  int64_t numel = 0;
  int32_t blocks = 0;
  while (static_cast<double>(numel) < share * static_cast<double>(trained.state_numel)) {
    numel += trained.groups[static_cast<size_t>(blocks++)].state_numel;
  }
  return blocks;
}

}  // namespace headrace::train
