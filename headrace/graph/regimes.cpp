#include "headrace/graph/regimes.h"

#include <algorithm>

namespace headrace::graph {

double stall_without_overlap(const StepCosts& costs, double links_s) { return costs.host_update_s + links_s; }

double stall_in_deadline_order(const StepCosts& costs) {
  return std::max(0.0, costs.host_update_s - costs.forward_s - costs.backward_s);
}

double stall_in_arrival_order(const StepCosts& costs) { return std::max(0.0, costs.host_update_s - costs.backward_s); }

double stall_with_global_clip(const StepCosts& costs, double device_share) {
  return std::max(0.0, (1 - device_share) * costs.host_update_s - costs.forward_s);
}

double device_share_without_stall(const StepCosts& costs) {
  return costs.host_update_s > costs.forward_s ? 1 - costs.forward_s / costs.host_update_s : 0;
}

}  // namespace headrace::graph
