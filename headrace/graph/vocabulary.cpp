#include "headrace/graph/vocabulary.h"

namespace headrace::graph {
namespace {

constexpr std::array<std::string_view, kNumLaneKinds> kLaneNames = {"compute",    "h2d",         "d2h", "file_read",
                                                                    "file_write", "host_update", "net"};
constexpr std::array<std::string_view, kNumTaskKinds> kTaskNames = {
    "fetch",  "forward",  "recompute",  "backward", "offload", "device_update", "host_update",
    "reduce", "snapshot", "accumulate", "merge",    "release", "adopt"};

}  // namespace

std::string_view name_of(LaneKind lane) {
  const auto index = static_cast<size_t>(lane);
  return index < kNumLaneKinds ? kLaneNames[index] : "unknown";
}

std::string name_of(LaneKind lane, int32_t lane_index) {
  std::string name(name_of(lane));
  return lane == LaneKind::kHostUpdate ? name + "[" + std::to_string(lane_index) + "]" : name;
}

std::string_view name_of(TaskKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < kNumTaskKinds ? kTaskNames[index] : "unknown";
}

std::optional<LaneKind> lane_named(std::string_view name) {
  for (size_t i = 0; i < kNumLaneKinds; ++i) {
    if (kLaneNames[i] == name) return static_cast<LaneKind>(i);
  }
  return std::nullopt;
}

bool runs_in_program_order(LaneKind lane) { return lane == LaneKind::kCompute || lane == LaneKind::kNet; }

}  // namespace headrace::graph
