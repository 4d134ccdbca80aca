#include "headrace/train/offload_bench_control.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "headrace/graph/executor.h"
#include "headrace/policy/lane_threads.h"
#include "headrace/policy/resident.h"
#include "headrace/train/offload_bench_traffic.h"

namespace headrace::train {
namespace {

using graph::LaneKind;
using graph::TaskKind;

// A step of the control beside each timed one of the run: one task of compute, and those of links and host workers that
// touch memory, without an edge.
std::vector<graph::StepGraph> free_steps(const graph::TaskGraph& ran, const BenchSteps& steps) {
  std::vector<graph::StepGraph> free(static_cast<size_t>(steps.timed));
  for (graph::StepGraph& step : free) {
    step.graph.num_lanes = ran.num_lanes;
    step.graph.add({.kind = TaskKind::kForward, .lane = LaneKind::kCompute, .block = 0});
  }
  for (graph::Task task : ran.tasks) {
    if (task.lane == LaneKind::kCompute || task.bytes == 0 || task.step < steps.warm_up) continue;
    const auto step = static_cast<size_t>(task.step - steps.warm_up);
    task.slot = graph::kNoSlot;
    free[step].graph.add(task);
  }
  return free;
}

std::vector<at::Tensor> clones(const std::vector<at::Tensor>& weights) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& block : weights) copies.push_back(block.clone());
  return copies;
}

LaneBytes bytes_a_step(const graph::TaskGraph& graph, const BenchSteps& steps) {
  LaneBytes bytes;
  for (const graph::Task& task : graph.tasks) {
    const double share = static_cast<double>(task.bytes) / static_cast<double>(steps.timed);
    if (task.step < steps.warm_up) continue;
    if (task.lane == LaneKind::kH2d) bytes.h2d += share;
    if (task.lane == LaneKind::kD2h) bytes.d2h += share;
    if (task.lane == LaneKind::kHostUpdate) bytes.host_update += share;
  }
  return bytes;
}

// The resident policy's steps with the traffic beside them.
class Control {
 public:
  Control(const BenchWorkload& workload, const OffloadBenchRow& zenflow, const BenchSteps& steps)
      : workload_(workload),
        steps_(steps),
        resident_(workload.model(), clones(workload.weights()), {.optimizer = bench_optimizer(zenflow.clip)}),
        executor_(policy::lane_settings(workload.cores(), num_workers(), /*deadline_s=*/600, steps.all()),
                  [this, traffic = make_traffic(zenflow)](const graph::Task& task, int32_t lane_index) {
                    task.lane == LaneKind::kCompute ? step() : traffic->run(task, lane_index);
                  }) {}

  graph::Recording run(const std::vector<graph::StepGraph>& timed, const StepStarts& on_step) {
    for (int64_t i = 0; i < steps_.all(); ++i) {
      on_step(i, steps_.all());
      executor_.run_step(timed[static_cast<size_t>(std::max<int64_t>(0, i - steps_.warm_up))]);
    }
    executor_.drain();
    return executor_.recording();
  }

  // [s] a timed step.
  double forward_s() const { return forward_s_ / static_cast<double>(steps_.timed); }
  double backward_s() const { return backward_s_ / static_cast<double>(steps_.timed); }

 private:
  int32_t num_workers() const { return static_cast<int32_t>(workload_.cores().host.size()); }

  // A lane that hangs may outlive this.
  std::shared_ptr<Traffic> make_traffic(const OffloadBenchRow& zenflow) const {
    const Traffic::Settings settings{.update_parts = zenflow.zenflow->has_slots ? zenflow.zenflow->update_interval : 1,
                                     .host_workers = num_workers(),
                                     .host_bytes_per_s = zenflow.resident.host_bytes_per_s};
    return std::make_shared<Traffic>(workload_.make_device({.bytes_per_s = zenflow.resident.link_bytes_per_s}),
                                     settings);
  }

  void step() {
    const policy::StepResult result = bench_step(resident_, workload_, num_steps_);
    if (num_steps_++ < steps_.warm_up) return;
    forward_s_ += result.forward_s;
    backward_s_ += result.backward_s;
  }

  const BenchWorkload& workload_;
  const BenchSteps steps_;
  policy::Resident resident_;
  int64_t num_steps_ = 0;
  double forward_s_ = 0, backward_s_ = 0;  // of timed steps
  graph::Executor executor_;               // last: its lanes use all of the above
};

}  // namespace

OffloadBenchRow measure_control(const BenchWorkload& workload, const OffloadBenchRow& zenflow,
                                const graph::TaskGraph& ran, const BenchSteps& steps, const StepStarts& on_step,
                                const OffloadBenchOptions& options) {
  OffloadBenchRow row;
  row.policy = kControlPolicy;
  row.clip = zenflow.clip;
  row.resident = zenflow.resident;
  row.bytes_formula = zenflow.bytes_formula;
  const BenchSteps own{.timed = steps.timed};
  Control control(workload, zenflow, own);
  const graph::Recording recording = control.run(free_steps(ran, steps), on_step);
  add_times(recording, own.warm_up, row);
  add_forecasts(recording, own.warm_up, static_cast<int64_t>(workload.cores().host.size()), row);
  row.work.forward_s = control.forward_s();
  row.work.backward_s = control.backward_s();
  row.bytes = bytes_a_step(recording.graph, own);
  if (options.on_cell) options.on_cell(row, recording);
  return row;
}

}  // namespace headrace::train
