#include "headrace/train/offload_bench_zenflow.h"

#include <algorithm>
#include <utility>

#include "headrace/os/memory_facts.h"
#include "headrace/plan/zenflow.h"
#include "headrace/policy/zenflow/deferred_update.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "headrace/train/offload_bench_control.h"

namespace headrace::train {
namespace {

constexpr int64_t kWarmUpSteps = 1;      // U
constexpr int64_t kSelectInterval = 16;  // R

using graph::LaneKind;

plan::HostWork host_work(const ZenflowCell& cell, double topk, const ResidentBaseline& resident, double device_share) {
  return {.exact_update_s = (1 - device_share) * resident.host_update_s(),
          .step_s = resident.compute_s(),
          .deferred_share = 1 - topk,
          .has_slots = cell.has_slots};
}

policy::ZenFlowSettings settings_of(const BenchWorkload& workload, const ZenflowCell& cell, double topk,
                                    const ResidentBaseline& resident, int32_t device_blocks) {
  policy::ZenFlowSettings settings;
  settings.optimizer = bench_optimizer(cell.clip);
  settings.topk_ratio = topk;
  settings.schedule = {
      .update_interval = cell.update_interval, .warmup_steps = kWarmUpSteps, .select_interval = kSelectInterval};
  settings.window_sum = cell.has_slots ? policy::zenflow::WindowSum::kSlots : policy::zenflow::WindowSum::kRunning;
  settings.num_device_blocks = device_blocks;
  settings.host_workers = static_cast<int32_t>(workload.cores().host.size());
  settings.host_bytes_per_s = resident.host_bytes_per_s;
  settings.deadline_s = 600;
  return settings;
}

plan::ZenflowPlan plan_of(const BenchWorkload& workload, const policy::ZenFlowSettings& settings, bool has_slots) {
  const policy::ZenFlow::Sizes sizes = policy::ZenFlow::sizes_of(workload.model(), settings);
  plan::ZenflowRequest request;
  for (const at::Tensor& block : workload.weights()) request.block_parameters.push_back(block.numel());
  request.important = sizes.important;
  request.deferred = sizes.deferred;
  request.ring_buffer = sizes.ring_buffer;
  request.num_ring_buffers = sizes.num_ring_buffers;
  request.exchange = sizes.exchange;
  request.longest_interval = settings.schedule.update_interval;
  request.tokens = workload.tokens();
  request.trained_tokens = workload.micro_batches().front().num_trained_tokens();
  return plan::plan_zenflow(workload.model().shape(), request, /*shares_gradient=*/false, has_slots);
}

void require_memory(const plan::ZenflowPlan& plan) {
  plan::require_fits(plan.host, os::memory_facts().available_bytes - plan.device.total(),
                     "what this machine has available beside the emulated device",
                     "Lower --max-interval, or try policy zenflow-running.");
}

// Deferred gradients go down at every step, deferred weights come up once a window: (1 - k) M, and that over S.
LaneBytes bytes_formula(const ZenflowCell& cell, int64_t deferred) {
  const auto numel = static_cast<double>(deferred), steps = static_cast<double>(cell.update_interval);
  int64_t window = policy::zenflow::window_update_bytes(cell.update_interval);
  if (!cell.has_slots) {
    window = policy::zenflow::window_update_bytes(1) + policy::zenflow::accumulate_bytes(true) +
             (cell.update_interval - 1) * policy::zenflow::accumulate_bytes(false);
  }
  return {kFloatBytes * numel / steps, kFloatBytes * numel, numel * static_cast<double>(window) / steps};
}

// What lanes counted, and of it what changed sides.
struct Counters {
  LaneBytes bytes, exchanged;
};

Counters counters_of(const policy::ZenFlow& zenflow) {
  Counters counters;
  const auto read = [&](LaneKind lane, double LaneBytes::*field) {
    counters.bytes.*field = static_cast<double>(zenflow.bytes_of(lane));
    counters.exchanged.*field = static_cast<double>(zenflow.exchanged_bytes_of(lane));
  };
  read(LaneKind::kH2d, &LaneBytes::h2d);
  read(LaneKind::kD2h, &LaneBytes::d2h);
  read(LaneKind::kHostUpdate, &LaneBytes::host_update);
  return counters;
}

// What is known before the run.
OffloadBenchRow begin_row(const BenchWorkload& workload, const ZenflowCell& cell, double topk,
                          const ResidentBaseline& resident) {
  OffloadBenchRow row;
  row.policy = cell.policy;
  row.clip = cell.clip;
  row.resident = resident;
  const policy::TrainedBlocks trained = policy::find_trained_blocks(workload.model(), {});
  row.device_blocks = num_device_blocks(trained, cell.device_share);
  row.device_share = 1 - static_cast<double>(workload.numel(row.device_blocks)) / static_cast<double>(workload.numel());
  const plan::HostWork work = host_work(cell, topk, resident, row.device_share);
  const double window_s = static_cast<double>(cell.update_interval) * work.step_s;
  const double floor = plan::window_work_s(work, cell.update_interval) / window_s;
  row.closed_form_stall_s = std::max(0.0, floor - 1) * work.step_s;
  row.zenflow = {
      .update_interval = cell.update_interval, .has_slots = cell.has_slots, .topk = topk, .host_floor = floor};
  return row;
}

// Fills the row and returns all steps as they ran; the policy's memory is free again.
graph::Recording run(const BenchWorkload& workload, const policy::ZenFlowSettings& settings, const BenchSteps& steps,
                     const StepStarts& on_step, OffloadBenchRow& row) {
  policy::ZenFlow zenflow(workload.model(), workload.make_device({.bytes_per_s = row.resident.link_bytes_per_s}),
                          workload.weights(), settings);
  // Lanes are still at work on a step when the next one begins: they are counted from where they had nothing left to do
  // to where they have nothing left again, and those are whole windows. The timed steps begin a window later.
  const int64_t first_counted = kWarmUpSteps + settings.schedule.update_interval;
  Counters before;
  run_steps(zenflow, workload, steps, [&](int64_t step, int64_t num_steps) {
    if (step == first_counted) {
      zenflow.recording();  // waits for the lanes
      before = counters_of(zenflow);
    }
    on_step(step, num_steps);
  });
  graph::Recording recording = zenflow.recording();
  add_times(recording, steps.warm_up, row);
  add_forecasts(recording, steps.warm_up, settings.host_workers, row);
  const Counters after = counters_of(zenflow);
  const auto counted_steps = static_cast<double>(steps.all() - first_counted);
  row.bytes = (after.bytes - before.bytes) / counted_steps;
  row.exchanged = (after.exchanged - before.exchanged) / counted_steps;
  row.peak = {zenflow.device_budget().peak(), zenflow.host_budget().peak()};
  row.zenflow->staleness_mean = zenflow.staleness().mean();
  row.zenflow->staleness_max = zenflow.staleness().largest();
  row.zenflow->churn = zenflow.step_metrics().at("selection_churn").get<double>();
  return recording;
}

}  // namespace

bool is_zenflow(const std::string& policy) { return policy.starts_with("zenflow"); }

std::vector<ZenflowCell> zenflow_cells(const std::string& policy, bool clip, const OffloadBenchSettings& settings,
                                       const ResidentBaseline& resident) {
  ZenflowCell cell{.policy = policy, .clip = clip, .has_slots = policy == "zenflow"};
  const auto with_windows = [&](double share) {
    const int64_t shortest =
        plan::shortest_interval(host_work(cell, settings.topk, resident, share), settings.max_interval);
    cell.update_interval = shortest > 0 ? shortest : settings.max_interval;
    return shortest > 0;
  };
  const bool follows = with_windows(0);
  cell.has_control =
      policy == "zenflow" && std::count(settings.policies.begin(), settings.policies.end(), kControlPolicy) > 0;
  std::vector<ZenflowCell> cells = {cell};
  const bool is_auto = settings.device_share == "auto";
  const double room_s = static_cast<double>(settings.max_interval) * resident.compute_s();
  const double longest_s = plan::window_work_s(host_work(cell, settings.topk, resident, 0), settings.max_interval);
  cell.device_share = is_auto ? (follows ? 0 : 1 - room_s / longest_s) : std::stod(settings.device_share);
  if (cell.device_share == 0) return cells;
  cell.policy += "+share";
  cell.has_control = false;
  with_windows(cell.device_share);
  cells.push_back(cell);
  return cells;
}

BenchSteps zenflow_steps(int64_t update_interval, int64_t least) {
  const int64_t timed = std::max({least, 2 * update_interval + 2, kSelectInterval});
  const int64_t windows = (timed + update_interval - 1) / update_interval;
  return {.warm_up = kWarmUpSteps + 2 * update_interval, .timed = windows * update_interval};
}

std::vector<OffloadBenchRow> measure_zenflow(const BenchWorkload& workload, const ZenflowCell& cell,
                                             const ResidentBaseline& resident, const OffloadBenchSettings& settings,
                                             const StepStarts& on_step, const OffloadBenchOptions& options) {
  OffloadBenchRow row = begin_row(workload, cell, settings.topk, resident);
  policy::ZenFlowSettings of_policy = settings_of(workload, cell, settings.topk, resident, row.device_blocks);
  const plan::ZenflowPlan plan = plan_of(workload, of_policy, cell.has_slots);
  require_memory(plan);
  row.plan = {plan.device.total(), plan.host.total()};
  row.zenflow->deferred = policy::ZenFlow::sizes_of(workload.model(), of_policy).deferred;
  row.bytes_formula = bytes_formula(cell, row.zenflow->deferred);
  const BenchSteps steps = zenflow_steps(cell.update_interval, settings.steps);
  of_policy.recorded_steps = steps.all();
  const graph::Recording recording = run(workload, of_policy, steps, on_step, row);
  if (options.on_cell) options.on_cell(row, recording);
  std::vector<OffloadBenchRow> rows = {row};
  if (cell.has_control) rows.push_back(measure_control(workload, row, recording.graph, steps, on_step, options));
  return rows;
}

}  // namespace headrace::train
