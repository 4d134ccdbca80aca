#include "headrace/graph/chrome_trace.h"

#include <algorithm>
#include <array>

#include "headrace/base/json.h"

namespace headrace::graph {
namespace {

constexpr int kProcess = 1;
constexpr double kNsPerMicrosecond = 1000;

OrderedJson metadata(const std::string& what, int32_t track, const std::string& key, const OrderedJson& value) {
  return {{"ph", "M"}, {"name", what}, {"pid", kProcess}, {"tid", track}, {"args", {{key, value}}}};
}

OrderedJson slice(const Task& task, const TaskRun& run, int32_t track) {
  std::string name(name_of(task.kind));
  OrderedJson args = {{"step", task.step}};
  if (task.block != kWholeModel) {
    name += " " + std::to_string(task.block);
    args["block"] = task.block;
  }
  if (task.piece != kWholeBlock) {
    name += "." + std::to_string(task.piece);
    args["piece"] = task.piece;
  }
  if (task.micro_batch != kWholeStep) args["micro_batch"] = task.micro_batch;
  if (task.bytes != 0) args["bytes"] = task.bytes;
  if (task.staleness != kNoStaleness) args["staleness"] = task.staleness;
  return {{"ph", "X"},
          {"name", name},
          {"cat", name_of(task.kind)},
          {"pid", kProcess},
          {"tid", track},
          {"ts", static_cast<double>(run.start_ns) / kNsPerMicrosecond},
          {"dur", static_cast<double>(run.end_ns - run.start_ns) / kNsPerMicrosecond},
          {"args", args}};
}

}  // namespace

void write_chrome_trace(std::ostream& out, const TaskGraph& graph, const Timeline& timeline, const std::string& title) {
  std::array<int32_t, kNumLaneKinds> first_track{};
  int32_t num_tracks = 0;
  const auto replace = OrderedJson::error_handler_t::replace;
  out << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  out << metadata("process_name", 0, "name", title).dump(-1, ' ', false, replace);
  for (size_t i = 0; i < kNumLaneKinds; ++i) {
    first_track[i] = num_tracks + 1;  // viewers take track 0 for the process itself
    for (int32_t index = 0; index < graph.num_lanes[i]; ++index) {
      const int32_t track = ++num_tracks;
      out << ",\n" << metadata("thread_name", track, "name", name_of(static_cast<LaneKind>(i), index)).dump();
      out << ",\n" << metadata("thread_sort_index", track, "sort_index", track).dump();
    }
  }
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    const TaskRun& run = timeline.runs[i];
    out << ",\n" << slice(task, run, first_track[static_cast<size_t>(task.lane)] + run.lane_index).dump();
  }
  out << "\n]}\n";
}

}  // namespace headrace::graph
