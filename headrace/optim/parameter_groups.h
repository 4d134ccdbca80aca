// Which stretches of a block's flat buffer are trained, with or without decay, and where their moments lie.
// Plain data, made once; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace::optim {

// One parameter of a flat buffer, in order of offset.
struct ParameterRange {
  int64_t offset = 0;  // [elements] into weights and gradients
  int64_t numel = 0;   // [elements] may be 0
  bool decays = false;
  bool is_frozen = false;
};

// A stretch that is updated in one call: neighbours of one kind, the gaps between them included (they hold zeros and
// zeros they stay).
struct ParameterGroup {
  int64_t offset = 0;        // [elements] into weights and gradients
  int64_t state_offset = 0;  // [elements] into m and v, which hold trained elements only
  int64_t numel = 0;         // [elements] > 0
  bool decays = false;
};

struct ParameterGroups {
  std::vector<ParameterGroup> groups;
  int64_t state_numel = 0;  // [elements] of m and of v
};

// Frozen and empty parameters get neither update nor state. Throws InternalError when ranges overlap.
ParameterGroups group_parameters(std::span<const ParameterRange> ranges);

}  // namespace headrace::optim
