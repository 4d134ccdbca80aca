#include "headrace/policy/lane_threads.h"

#include "headrace/graph/stall.h"
#include "headrace/os/affinity.h"
#include "headrace/tensor/gpu_memory.h"

namespace headrace::policy {

using graph::LaneKind;

graph::ExecutorSettings lane_settings(const device::Cores& cores, int32_t host_workers, double deadline_s,
                                      int64_t recorded_steps) {
  graph::ExecutorSettings settings;
  settings.deadline_s = deadline_s;
  settings.recorded_steps = recorded_steps;
  for (const LaneKind lane : {LaneKind::kCompute, LaneKind::kH2d, LaneKind::kD2h}) {
    settings.num_lanes[static_cast<size_t>(lane)] = 1;
  }
  settings.num_lanes[static_cast<size_t>(LaneKind::kHostUpdate)] = host_workers;
  settings.on_lane_start = [host = cores.host](LaneKind lane, int32_t index) {
    if (lane == LaneKind::kHostUpdate) return os::pin_this_thread_to_one(host, index);
    os::pin_this_thread(host);
  };
  return settings;
}

std::shared_ptr<memory::Arena> make_device_arena(const device::Device& device,
                                                 const std::shared_ptr<memory::Budget>& budget) {
  const int64_t limit = budget->limit(), left = limit - budget->in_use();
  if (limit > 0 && left <= 0) budget->take(memory::Kind::kWorkspace, 1);  // refuses, in the budget's words
  hold_gpu_to(device, *budget);
  if (!device.shares_host_memory()) return nullptr;
  return limit == 0 ? memory::make_host_arena(budget) : std::make_shared<memory::Arena>(budget, left);
}

void hold_gpu_to(const device::Device& device, const memory::Budget& budget) {
  if (device.gpu_index() >= 0 && budget.limit() > 0) tensor::limit_gpu_memory(budget.limit() - budget.in_use());
}

int64_t taken_by_compute(const std::shared_ptr<memory::Arena>& arena) {
  return arena ? arena->extent() : tensor::gpu_memory().peak;
}

Json device_memory_report(const memory::Budget& budget, const std::shared_ptr<memory::Arena>& arena) {
  Json report = budget.to_json();
  if (arena) return report;
  const int64_t held = tensor::gpu_memory().peak;
  report["peak"] = report.at("peak").get<int64_t>() + held;
  report["by_kind"]["workspace"] = report["by_kind"].value("workspace", int64_t{0}) + held;
  return report;
}

OrderedJson stall_report(const graph::Recording& recorded) {
  const graph::StallTable table =
      graph::attribute_stall(recorded.graph, recorded.timeline, graph::whole_run(recorded.timeline));
  OrderedJson rows = OrderedJson::array();
  for (const graph::StallRow& row : table.rows) {
    rows.push_back({{"reason", graph::name_of(row.reason)}, {"s", graph::to_seconds(row.ns)}});
  }
  return {{"window_s", graph::to_seconds(table.window.length_ns())},
          {"idle_s", graph::to_seconds(table.idle_ns)},
          {"by_reason", rows}};
}

}  // namespace headrace::policy
