// A decoder as a list of blocks. Holds no weights: they arrive as flat buffers, wherever a policy keeps them.
// Immutable after construction; share it by const reference among threads.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/config/model_shape.h"
#include "headrace/model/spec.h"

namespace headrace::model {

class Model {
 public:
  explicit Model(config::ModelShape shape);

  const config::ModelShape& shape() const { return shape_; }
  // [0] = embedding, [1..L] = layers, [L+1] = final norm + head. With a tied head the last block holds only the norm
  // and the loss also reads, and accumulates into, block 0.
  const std::vector<BlockSpec>& blocks() const { return blocks_; }
  int64_t num_blocks() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t head_index() const { return num_blocks() - 1; }
  // [elements] of all parameters, gaps not counted; tied weights once.
  int64_t num_parameters() const;

 private:
  config::ModelShape shape_;
  std::vector<BlockSpec> blocks_;
};

}  // namespace headrace::model
