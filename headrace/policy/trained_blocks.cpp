#include "headrace/policy/trained_blocks.h"

namespace headrace::policy {

TrainedBlocks find_trained_blocks(const model::Model& model,
                                  const std::function<bool(std::string_view name)>& is_frozen) {
  TrainedBlocks trained;
  for (const model::BlockSpec& block : model.blocks()) {
    std::vector<optim::ParameterRange> ranges;
    for (const model::ParameterSpec& parameter : block.parameters) {
      const bool stays = is_frozen && is_frozen(parameter.name);
      ranges.push_back({parameter.offset, parameter.numel, parameter.decays, stays});
      if (!stays) trained.parameters.push_back(parameter.name);
    }
    trained.groups.push_back(optim::group_parameters(ranges));
    trained.state_numel += trained.groups.back().state_numel;
  }
  return trained;
}

}  // namespace headrace::policy
