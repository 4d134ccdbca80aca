// Settings for and checks of what an executor ran.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "headrace/graph/executor.h"

namespace headrace::graph {

// One thread a lane, two for host updates.
inline ExecutorSettings all_lanes(int32_t host_workers = 2) {
  ExecutorSettings settings;
  settings.num_lanes.fill(1);
  settings.num_lanes[static_cast<size_t>(LaneKind::kHostUpdate)] = host_workers;
  return settings;
}

// Every edge held, no lane did two things at once, the compute lane kept program order.
inline void expect_sound(const Recording& recording) {
  const TaskGraph& graph = recording.graph;
  const std::vector<TaskRun>& runs = recording.timeline.runs;
  ASSERT_EQ(runs.size(), graph.tasks.size());
  std::map<std::pair<LaneKind, int32_t>, std::vector<std::pair<int64_t, int64_t>>> by_lane;
  for (size_t i = 0; i < runs.size(); ++i) {
    ASSERT_LE(runs[i].start_ns, runs[i].end_ns);
    ASSERT_LT(runs[i].lane_index, graph.lanes_of(graph.tasks[i].lane));
    by_lane[{graph.tasks[i].lane, runs[i].lane_index}].emplace_back(runs[i].start_ns, runs[i].end_ns);
  }
  for (auto& [lane, times] : by_lane) {
    std::sort(times.begin(), times.end());
    for (size_t i = 1; i < times.size(); ++i) ASSERT_GE(times[i].first, times[i - 1].second) << name_of(lane.first);
  }
  for (const Edge& edge : edges_with_program_order(graph)) {
    const auto from = static_cast<size_t>(edge.from), to = static_cast<size_t>(edge.to);
    ASSERT_GE(runs[to].start_ns, runs[from].end_ns)
        << name_of(graph.tasks[to]) << " before " << name_of(graph.tasks[from]) << " had ended";
  }
}

}  // namespace headrace::graph
