#include "headrace/graph/step_shape.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "headrace/base/errors.h"

namespace headrace::graph {
namespace {

// Of `bytes` in `count` parts, as equal as can be, part `i`.
int64_t part_of(int64_t bytes, int32_t count, int32_t i) { return bytes * (i + 1) / count - bytes * i / count; }

void require(bool is_right, const std::string& text) {
  if (!is_right) throw InternalError("graph.build", text);
}

}  // namespace

int64_t StepShape::piece_bytes(int32_t block, int32_t piece, int64_t bytes) const {
  const int32_t count = blocks[static_cast<size_t>(block)].num_pieces;
  if (block != 0 || needed_share == 0) return part_of(bytes, count, piece);
  const int64_t needed = std::llround(needed_share * static_cast<double>(bytes));
  return piece == 0 ? needed : part_of(bytes - needed, count - 1, piece - 1);
}

int32_t StepShape::gradient_slot(int32_t block, int32_t num_device_blocks) const {
  const int32_t first_shared = std::max(num_device_blocks, is_tied || needed_share > 0 ? 1 : 0);
  if (gradient_slots == 0 || block < first_shared) return kOwnBuffer;
  return (num_blocks() - 1 - block) % gradient_slots;
}

void require_sound(const StepShape& shape) {
  require(shape.num_blocks() >= 1 && shape.accumulate >= 1, std::to_string(shape.num_blocks()) + " blocks and " +
                                                                std::to_string(shape.accumulate) +
                                                                " micro-batches, at least one of each is needed.");
  for (const BlockShape& block : shape.blocks) {
    require(block.num_pieces >= 1, "a block of " + std::to_string(block.num_pieces) + " pieces, it has at least one.");
  }
  require(shape.gradient_slots >= 0, std::to_string(shape.gradient_slots) + " gradient slots.");
  require(shape.gradient_slots == 0 || shape.accumulate == 1 || shape.order == ComputeOrder::kLayerMajor,
          std::to_string(shape.gradient_slots) + " gradient slots with " + std::to_string(shape.accumulate) +
              " micro-batches one after the other: gradients would have to stay. Layer-major order frees them.");
  require(shape.needed_share >= 0 && shape.needed_share < 1,
          "a share of " + std::to_string(shape.needed_share) + " of block 0 is needed first.");
  require(shape.needed_share == 0 || shape.blocks.front().num_pieces >= 2,
          "rows of block 0 are needed first, but it is not cut into pieces.");
}

}  // namespace headrace::graph
