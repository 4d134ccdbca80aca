// What an offloaded run tells of itself: trace, stall by reason, bytes.
#include <string>

#include "headrace/graph/chrome_trace.h"
#include "headrace/graph/stall.h"
#include "headrace/policy/offload.h"

namespace headrace::policy {

using graph::LaneKind;

graph::Recording Offload::recording() {
  finish_updates();
  return executor_->recording();
}

bool Offload::write_trace(std::ostream& out) {
  if (settings_.recorded_steps == 0 || num_updates_ == first_step_) return false;
  const graph::Recording recorded = recording();
  const bool is_emulated = lanes_->device().kind() == device::Kind::kEmulated;
  graph::write_chrome_trace(out, recorded.graph, recorded.timeline, is_emulated ? "offload (emulated)" : "offload");
  return true;
}

// Of the recorded steps, from the first one's data to the last one's end.
OrderedJson Offload::stall_report() const {
  const graph::Recording recorded = executor_->recording();
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

OrderedJson Offload::report() const {
  OrderedJson lanes;
  for (const LaneKind lane : {LaneKind::kH2d, LaneKind::kD2h, LaneKind::kHostUpdate}) {
    lanes[std::string(graph::name_of(lane))] = bytes_of(lane);
  }
  OrderedJson report = {{"device", lanes_->device().describe()},
                        {"device_blocks", num_device_blocks_},
                        {"lane_bytes", lanes},
                        {"device_memory", device_budget_->to_json()},
                        {"host_memory", host_budget_->to_json()}};
  if (settings_.recorded_steps > 0 && num_updates_ > first_step_) report["stall"] = stall_report();
  return report;
}

}  // namespace headrace::policy
