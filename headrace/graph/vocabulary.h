// The words for what a step does and where: lanes and tasks as docs/architecture.md names them. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::graph {

// A lane does one task at a time. Of most kinds there is one lane; of host_update there may be several workers.
enum class LaneKind : uint8_t { kCompute, kH2d, kD2h, kFileRead, kFileWrite, kHostUpdate, kNet };
inline constexpr size_t kNumLaneKinds = 7;

enum class TaskKind : uint8_t {
  kFetch,
  kForward,
  kRecompute,
  kBackward,
  kOffload,
  kDeviceUpdate,
  kHostUpdate,
  kReduce,  // of the whole model: its gradient's norm; of a block: norm, column scores and split of its gradient
  kSnapshot,
  kAccumulate,  // adds an arrived gradient to its window's running sum, on a host lane
  kMerge,       // puts fetched deferred columns into the device's weights
  kRelease,     // of columns that leave the device: compute gathers their state, d2h brings it down
  kAdopt        // of columns that come to the device: a host lane updates and gathers, h2d brings up, compute scatters
};
inline constexpr size_t kNumTaskKinds = 13;

// "compute", "h2d", ...; "unknown" for a value outside the enumeration.
std::string_view name_of(LaneKind lane);
// Of one lane: "h2d", and "host_update[1]" where a kind may have several.
std::string name_of(LaneKind lane, int32_t lane_index);
// "fetch", "forward", ...; likewise.
std::string_view name_of(TaskKind kind);

// Empty when no lane has this name.
std::optional<LaneKind> lane_named(std::string_view name);

// Streams run in program order: a task that is not ready holds up all behind it. Other lanes choose among ready tasks.
bool runs_in_program_order(LaneKind lane);

}  // namespace headrace::graph
