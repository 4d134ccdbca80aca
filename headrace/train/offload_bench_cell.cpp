#include "headrace/train/offload_bench_cell.h"

#include <algorithm>
#include <utility>

#include "headrace/graph/measured_costs.h"
#include "headrace/graph/regimes.h"
#include "headrace/graph/simulator.h"
#include "headrace/plan/offload.h"
#include "headrace/policy/host_update.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/resident.h"

namespace headrace::train {
namespace {

constexpr int64_t kSimulatedSteps = 12;  // the second half is steady
constexpr int64_t kUntimed = 1;          // recorded steps before the timed ones

using graph::LaneKind;
using graph::TaskKind;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

graph::Recording record(policy::Offload& offload, const BenchWorkload& workload, int64_t steps,
                        const StepStarts& on_step) {
  run_steps(offload, workload, {.timed = steps}, on_step);
  return offload.recording();
}

// T_f and T_b as the step graph has them, which counts the loss to backward: a run whose state is all on the device.
void measure_compute(const BenchWorkload& workload, int64_t steps, const StepStarts& on_step,
                     ResidentBaseline& baseline) {
  policy::Offload offload(workload.model(), workload.make_device({}), workload.weights(),
                          {.optimizer = bench_optimizer(true),
                           .num_device_blocks = static_cast<int32_t>(workload.model().num_blocks()),
                           .recorded_steps = kUntimed + steps});
  const graph::Recording recording = record(offload, workload, steps, on_step);
  const graph::Window window = timed_window(recording.graph, recording.timeline, kUntimed);
  const auto count = static_cast<double>(steps);
  baseline.forward_s = compute_busy_s(recording, window, TaskKind::kForward) / count;
  baseline.backward_s = compute_busy_s(recording, window, TaskKind::kBackward) / count;
}

policy::OffloadSettings settings_of(const BenchWorkload& workload, const BenchCell& cell,
                                    const ResidentBaseline& resident, int32_t device_blocks, int64_t steps) {
  policy::OffloadSettings settings;
  settings.optimizer = bench_optimizer(cell.clip);
  settings.overlap = cell.policy == "none" ? policy::Overlap::kNone : policy::Overlap::kExact;
  settings.sends_needed_rows_first = cell.policy != "exact-in-order";
  settings.num_device_blocks = device_blocks;
  settings.host_workers = static_cast<int32_t>(workload.cores().host.size());
  settings.host_bytes_per_s = resident.host_bytes_per_s;
  settings.deadline_s = 600;
  settings.recorded_steps = kUntimed + steps;
  return settings;
}

StepForecast forecast(const graph::StepGraph& step, const graph::CostTable& costs) {
  graph::TaskGraph graph = graph::repeat_step(step, kSimulatedSteps);
  graph::assign_costs(graph, costs);
  const graph::Timeline timeline = graph::simulate(graph);
  const graph::Window window = graph::steady_window(graph, timeline);
  return {graph::steady_step_s(graph, timeline), graph::attribute_stall(graph, timeline, window).share()};
}

double closed_form_stall_s(const BenchCell& cell, const ResidentBaseline& resident, double device_share,
                           double link_s) {
  const graph::StepCosts costs{resident.forward_s, resident.backward_s, resident.host_update_s()};
  if (cell.policy == "none") return graph::stall_without_overlap(costs, link_s);
  const double stall_s =
      cell.clip ? graph::stall_with_global_clip(costs, device_share) : graph::stall_in_deadline_order(costs);
  return stall_s < 1e-9 * resident.compute_s() ? 0 : stall_s;
}

TierBytes planned(const BenchWorkload& workload, const policy::TrainedBlocks& trained, int32_t device_blocks) {
  plan::OffloadRequest request;
  for (const model::BlockSpec& block : workload.model().blocks()) request.block_parameters.push_back(block.numel);
  for (const optim::ParameterGroups& groups : trained.groups) {
    request.block_state_parameters.push_back(groups.state_numel);
  }
  request.device_blocks = device_blocks;
  request.tokens = workload.tokens();
  request.trained_tokens = workload.micro_batches().front().num_trained_tokens();
  const plan::OffloadPlan plan = plan::plan_offload(workload.model().shape(), request, /*gradient_slots=*/0,
                                                    graph::ComputeOrder::kMicroBatchMajor);
  return {plan.device.total(), plan.host.total()};
}

// M for the blocks whose state is on the host, each way once a step, and what AdamW touches of them.
LaneBytes bytes_formula(const BenchWorkload& workload, int32_t device_blocks) {
  const auto numel = static_cast<double>(workload.numel(device_blocks));
  return {kFloatBytes * numel, kFloatBytes * numel, static_cast<double>(policy::kHostUpdateBytes) * numel};
}

LaneBytes bytes_a_step(const policy::Offload& offload, int64_t steps) {
  const auto of = [&](LaneKind lane) {
    return static_cast<double>(offload.bytes_of(lane)) / static_cast<double>(BenchSteps{.timed = steps}.all());
  };
  return {of(LaneKind::kH2d), of(LaneKind::kD2h), of(LaneKind::kHostUpdate)};
}

}  // namespace

ResidentBaseline measure_resident(const BenchWorkload& workload, double host_ratio, double link_share, int64_t steps,
                                  const StepStarts& on_step) {
  ResidentBaseline baseline;
  baseline.host_ratio = host_ratio;
  measure_compute(workload, steps, on_step, baseline);
  std::vector<at::Tensor> weights;
  for (const at::Tensor& block : workload.weights()) weights.push_back(block.clone());
  policy::Resident resident(workload.model(), std::move(weights), {.optimizer = bench_optimizer(true)});
  std::vector<double> seconds;
  run_steps(resident, workload, {.timed = steps}, on_step, &seconds);
  baseline.step_time_s = median(seconds);
  const auto bytes = static_cast<double>(resident.state_numel());
  baseline.host_bytes_per_s = static_cast<double>(policy::kHostUpdateBytes) * bytes / baseline.host_update_s();
  baseline.link_bytes_per_s = kFloatBytes * static_cast<double>(workload.numel()) / (link_share * baseline.compute_s());
  return baseline;
}

OffloadBenchRow measure_cell(const BenchWorkload& workload, const BenchCell& cell, const ResidentBaseline& resident,
                             int64_t steps, const StepStarts& on_step, const OffloadBenchOptions& options) {
  const policy::TrainedBlocks trained = policy::find_trained_blocks(workload.model(), {});
  OffloadBenchRow row;
  row.policy = cell.policy;
  row.clip = cell.clip;
  row.resident = resident;
  row.device_blocks = num_device_blocks(trained, cell.device_share);
  row.bytes_formula = bytes_formula(workload, row.device_blocks);
  row.device_share = 1 - row.bytes_formula.h2d / (kFloatBytes * static_cast<double>(workload.numel()));
  row.plan = planned(workload, trained, row.device_blocks);
  const double link_s = 2 * row.bytes_formula.h2d / resident.link_bytes_per_s;
  row.closed_form_stall_s = closed_form_stall_s(cell, resident, row.device_share, link_s);
  const policy::OffloadSettings settings = settings_of(workload, cell, resident, row.device_blocks, steps);
  policy::Offload offload(workload.model(), workload.make_device({.bytes_per_s = resident.link_bytes_per_s}),
                          workload.weights(), settings);
  const graph::Recording recording = record(offload, workload, steps, on_step);
  add_times(recording, kUntimed, row);
  const graph::StepGraph& step = offload.graph_of(1);
  const graph::CostTable costs = graph::measured_costs(recording.graph, recording.timeline,
                                                       timed_window(recording.graph, recording.timeline, kUntimed));
  row.predicted = forecast(step, costs);
  row.ideal = forecast(step, with_set_rates(costs, resident, settings.host_workers));
  row.bytes = bytes_a_step(offload, steps);
  row.peak = {offload.device_budget().peak(), offload.host_budget().peak()};
  if (options.on_cell) options.on_cell(row, recording);
  return row;
}

}  // namespace headrace::train
