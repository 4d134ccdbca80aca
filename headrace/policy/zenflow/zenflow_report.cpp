// What a ZenFlow run tells of itself: trace, stall by reason, bytes, staleness, how columns moved.
#include <string>

#include "headrace/graph/chrome_trace.h"
#include "headrace/policy/lane_threads.h"
#include "headrace/policy/zenflow/zenflow.h"

namespace headrace::policy {

using graph::LaneKind;

graph::Recording ZenFlow::recording() {
  executor_->drain();
  is_drained_ = true;
  return executor_->recording();
}

bool ZenFlow::write_trace(std::ostream& out) {
  if (settings_.recorded_steps == 0 || num_steps_ == 0) return false;
  const graph::Recording recorded = recording();
  const bool is_emulated = lanes_->device().kind() == device::Kind::kEmulated;
  graph::write_chrome_trace(out, recorded.graph, recorded.timeline, is_emulated ? "zenflow (emulated)" : "zenflow");
  return true;
}

// Means over matrices, weighted by their size, of those with deferred columns.
ZenFlow::Concentration ZenFlow::concentration() const {
  Concentration mean;
  double weight = 0;
  for (size_t block = 0; block < states_.size(); ++block) {
    for (size_t i = 0; i < columns()[block].matrices.size(); ++i) {
      const zenflow::MatrixColumns& matrix = columns()[block].matrices[i];
      const zenflow::ColumnScore& score = states_[block].scores[i];
      const auto numel = static_cast<double>(matrix.shape.num_elements());
      mean.of_top += numel * score.concentration(static_cast<int64_t>(matrix.important.size()));
      mean.of_one_percent += numel * score.concentration(zenflow::num_important(0.01, matrix.shape.num_channels()));
      mean.of_selected += numel * score.share_of(matrix.important);
      weight += numel;
    }
  }
  if (weight == 0) return mean;
  return {mean.of_top / weight, mean.of_one_percent / weight, mean.of_selected / weight};
}

OrderedJson ZenFlow::step_metrics() const {
  const Concentration energy = concentration();
  OrderedJson metrics = {{"update_interval", update_interval()},
                         {"staleness_mean", staleness_.mean()},
                         {"staleness_max", staleness_.largest()},
                         {"energy_of_top_1_percent", energy.of_one_percent},
                         {"energy_of_top_k", energy.of_top},
                         {"energy_of_important", energy.of_selected},
                         {"selection_churn", churn()}};
  for (const LaneKind lane : {LaneKind::kH2d, LaneKind::kD2h, LaneKind::kHostUpdate}) {
    metrics[std::string(graph::name_of(lane)) + "_bytes"] = bytes_of(lane);
  }
  return metrics;
}

// Of the last selection of each block: columns that changed sides over those that are important.
double ZenFlow::churn() const {
  double sum = 0;
  for (const BlockState& state : states_) sum += state.churn;
  return states_.empty() ? 0 : sum / static_cast<double>(states_.size());
}

OrderedJson ZenFlow::report() const {
  OrderedJson lanes;
  for (const LaneKind lane : {LaneKind::kH2d, LaneKind::kD2h, LaneKind::kHostUpdate}) {
    lanes[std::string(graph::name_of(lane))] = bytes_of(lane);
  }
  OrderedJson report = {{"device", lanes_->device().describe()},
                        {"topk_ratio", settings_.topk_ratio},
                        {"update_interval", update_interval()},
                        {"staleness", {{"mean", staleness_.mean()}, {"max", staleness_.largest()}}},
                        {"selection_churn", churn()},
                        {"lane_bytes", lanes},
                        {"device_memory", device_memory_report(*device_budget_, arena_)},
                        {"host_memory", host_budget_->to_json()}};
  if (settings_.recorded_steps > 0 && num_steps_ > 0) report["stall"] = stall_report(executor_->recording());
  return report;
}

}  // namespace headrace::policy
