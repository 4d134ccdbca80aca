// What of each block is trained: the same for every policy. Made once; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/model/model.h"
#include "headrace/optim/parameter_groups.h"

namespace headrace::policy {

struct TrainedBlocks {
  std::vector<optim::ParameterGroups> groups;  // by block
  std::vector<std::string> parameters;         // Hugging Face names, in order of blocks
  int64_t state_numel = 0;                     // [elements] of one moment over all blocks
};

// `is_frozen` names parameters that stay as they are; empty: none.
TrainedBlocks find_trained_blocks(const model::Model& model,
                                  const std::function<bool(std::string_view name)>& is_frozen);

}  // namespace headrace::policy
