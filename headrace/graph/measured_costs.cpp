#include "headrace/graph/measured_costs.h"

#include <algorithm>
#include <map>
#include <utility>

namespace headrace::graph {
namespace {

struct Mean {
  double seconds = 0;
  int64_t count = 0;
  double value() const { return count > 0 ? seconds / static_cast<double>(count) : 0; }
};

// Sums over the tasks of one lane, for the line seconds = slope * bytes + offset.
struct LineFit {
  double count = 0, bytes = 0, seconds = 0, bytes_squared = 0, product = 0;

  void add(double task_bytes, double task_seconds) {
    count += 1;
    bytes += task_bytes;
    seconds += task_seconds;
    bytes_squared += task_bytes * task_bytes;
    product += task_bytes * task_seconds;
  }

  LaneCost line() const {
    if (count == 0) return {};
    if (bytes == 0) return {.seconds_per_byte = 0, .seconds_per_task = seconds / count};
    const double spread = count * bytes_squared - bytes * bytes;
    const bool has_one_size = spread <= 1e-9 * count * bytes_squared;
    const double slope = has_one_size ? seconds / bytes : (count * product - bytes * seconds) / spread;
    const double offset = (seconds - slope * bytes) / count;
    if (has_one_size || offset < 0) return {.seconds_per_byte = seconds / bytes, .seconds_per_task = 0};
    if (slope < 0) return {.seconds_per_byte = 0, .seconds_per_task = seconds / count};
    return {.seconds_per_byte = slope, .seconds_per_task = offset};
  }
};

}  // namespace

CostTable measured_costs(const TaskGraph& graph, const Timeline& timeline, const Window& window) {
  std::map<std::pair<TaskKind, int32_t>, Mean> compute;
  std::array<LineFit, kNumLaneKinds> lanes;
  CostTable table;
  table.source = CostSource::kMeasured;
  int32_t num_blocks = 0;
  const std::vector<int32_t> pieces = num_pieces_of(graph);
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    const TaskRun& run = timeline.runs[i];
    num_blocks = std::max(num_blocks, task.block + 1);
    if (run.end_ns <= window.begin_ns || run.end_ns > window.end_ns) continue;
    const double seconds = to_seconds(run.end_ns - run.start_ns);
    if (task.lane == LaneKind::kCompute) {
      Mean& mean = compute[{task.kind, task.block}];
      mean.seconds += seconds * pieces[i];  // of all of them, if they are alike
      ++mean.count;
    } else {
      lanes[static_cast<size_t>(task.lane)].add(static_cast<double>(task.bytes), seconds);
    }
  }
  table.blocks.resize(static_cast<size_t>(num_blocks));
  for (const auto& [name, mean] : compute) {
    const auto& [kind, block] = name;
    if (block == kWholeModel) {
      if (kind == TaskKind::kReduce) table.reduce_s = mean.value();
    } else if (const auto field = field_of(kind)) {
      table.blocks[static_cast<size_t>(block)].*field = mean.value();
    }
  }
  for (size_t lane = 0; lane < kNumLaneKinds; ++lane) table.lanes[lane] = lanes[lane].line();
  return table;
}

}  // namespace headrace::graph
