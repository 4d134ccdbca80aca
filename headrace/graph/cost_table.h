// How long each task takes on a machine: described by hand, or measured on it. Plain data; functions are pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/graph/task_graph.h"

namespace headrace::graph {

// Of a task on a lane other than compute: bytes * seconds_per_byte + seconds_per_task.
struct LaneCost {
  double seconds_per_byte = 0;
  double seconds_per_task = 0;  // latency of a link, overhead of a host task
};

// [s] of one block on the compute lane: the first three with one micro-batch, the others once a step with all pieces.
struct BlockCost {
  double forward_s = 0;
  double recompute_s = 0;
  double backward_s = 0;
  double device_update_s = 0;
  double split_s = 0;  // reduce of the block: norm, column scores and split of its gradient
  double merge_s = 0;
  double release_s = 0;
  double adopt_s = 0;
};

// The field that says what a task of this kind costs; null when it is none that the compute lane does for a block.
double BlockCost::*field_of(TaskKind kind);

enum class CostSource { kDescribed, kMeasured };

struct CostTable {
  CostSource source = CostSource::kDescribed;
  std::array<LaneCost, kNumLaneKinds> lanes{};  // that of compute is not used
  std::vector<BlockCost> blocks;                // in forward order
  double reduce_s = 0;                          // norm of the whole gradient, on the compute lane

  LaneCost& of(LaneKind lane) { return lanes[static_cast<size_t>(lane)]; }
  const LaneCost& of(LaneKind lane) const { return lanes[static_cast<size_t>(lane)]; }
  // {"source": "described", "lanes": {"h2d": {"seconds_per_byte": 4e-11, "seconds_per_task": 1e-5}, ...},
  //  "blocks": [{"forward_s": ..., "recompute_s": ..., (the other fields of BlockCost)}, ...], "reduce_s": ...}
  OrderedJson to_json() const;
};

// Lanes, and keys other than "source" and "blocks", may be left out: they cost nothing. Throws DataError naming
// `source` and the key when one is unknown or a value is no finite number >= 0.
CostTable cost_table_from_json(const Json& json, std::string_view source);

// Sets cost_s of every task; on the compute lane pieces share a block's cost evenly. Throws InternalError when a task's
// block is not in the table.
void assign_costs(TaskGraph& graph, const CostTable& table);

}  // namespace headrace::graph
