#include "headrace/model/model.h"

#include <utility>

namespace headrace::model {

Model::Model(config::ModelShape shape) : shape_(std::move(shape)), blocks_(build_blocks(shape_)) {}

int64_t Model::num_parameters() const {
  int64_t total = 0;
  for (const BlockSpec& block : blocks_) {
    for (const ParameterSpec& parameter : block.parameters) total += parameter.numel;
  }
  return total;
}

}  // namespace headrace::model
