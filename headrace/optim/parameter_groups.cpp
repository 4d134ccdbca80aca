#include "headrace/optim/parameter_groups.h"

#include <string>

#include "headrace/base/errors.h"

namespace headrace::optim {

ParameterGroups group_parameters(std::span<const ParameterRange> ranges) {
  ParameterGroups result;
  bool joins_previous = false;  // nothing frozen since the last group
  int64_t end = 0;
  for (const ParameterRange& range : ranges) {
    if (range.offset < end) {
      throw InternalError("optim.group", "a parameter at " + std::to_string(range.offset) +
                                             " begins before the one ahead of it ends, at " + std::to_string(end) +
                                             ".");
    }
    end = range.offset + range.numel;
    if (range.numel == 0) continue;
    if (range.is_frozen) {
      joins_previous = false;
      continue;
    }
    if (joins_previous && result.groups.back().decays == range.decays) {
      ParameterGroup& group = result.groups.back();
      result.state_numel += end - (group.offset + group.numel);
      group.numel = end - group.offset;
    } else {
      result.groups.push_back({range.offset, result.state_numel, range.numel, range.decays});
      result.state_numel += range.numel;
    }
    joins_previous = true;
  }
  return result;
}

}  // namespace headrace::optim
