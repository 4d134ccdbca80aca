// The step of the resident policy: everything on the device, nothing on any other lane. Pure; any thread.
#pragma once

#include "headrace/graph/step_graph.h"
#include "headrace/graph/step_shape.h"

namespace headrace::graph {

// Each block is updated on the device: with clipping after the norm, else as soon as its gradient is complete.
// shape.host_workers has no say.
StepGraph resident_step(const StepShape& shape);

}  // namespace headrace::graph
