// What an offloaded run tells of itself: trace, stall by reason, bytes.
#include <string>

#include "headrace/graph/chrome_trace.h"
#include "headrace/policy/lane_threads.h"
#include "headrace/policy/offload.h"

namespace headrace::policy {

using graph::LaneKind;

graph::Recording Offload::recording() {
  finish_updates();
  return executor_->recording();
}

bool Offload::write_trace(std::ostream& out) {
  if (settings_.recorded_steps == 0 || num_steps_ == first_step_) return false;
  const graph::Recording recorded = recording();
  const bool is_emulated = lanes_->device().kind() == device::Kind::kEmulated;
  graph::write_chrome_trace(out, recorded.graph, recorded.timeline, is_emulated ? "offload (emulated)" : "offload");
  return true;
}

OrderedJson Offload::report() const {
  OrderedJson lanes;
  for (const LaneKind lane : {LaneKind::kH2d, LaneKind::kD2h, LaneKind::kHostUpdate}) {
    lanes[std::string(graph::name_of(lane))] = bytes_of(lane);
  }
  OrderedJson report = {{"device", lanes_->device().describe()},
                        {"device_blocks", num_device_blocks_},
                        {"lane_bytes", lanes},
                        {"device_memory", device_memory_report(*device_budget_, arena_)},
                        {"host_memory", host_budget_->to_json()}};
  if (settings_.recorded_steps > 0 && num_steps_ > first_step_) report["stall"] = stall_report(executor_->recording());
  return report;
}

}  // namespace headrace::policy
