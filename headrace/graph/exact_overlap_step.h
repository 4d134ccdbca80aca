// The step of exact offloading with overlap: nothing waits for more than it must, and no bit changes. A block's
// gradient goes down when it is complete, its update starts when gradient and clip factor are there, its weights go up
// at once, piece by piece where the block is cut, and the next forward waits block by block. Pure; any thread.
#pragma once

#include "headrace/graph/step_graph.h"
#include "headrace/graph/step_shape.h"

namespace headrace::graph {

// The first `num_device_blocks` blocks have their optimizer state on the device: they are updated there and cross no
// link. With clipping that gives the host time, since the next forward needs them first. 0 <= num_device_blocks <=
// shape.num_blocks(), else InternalError.
// With gradient slots the backward of a block waits for the offload of the block that had its slot before, and such
// gradients go down in backward order rather than by deadline: the compute lane waits for their room.
StepGraph exact_overlap_step(const StepShape& shape, int32_t num_device_blocks = 0);

}  // namespace headrace::graph
