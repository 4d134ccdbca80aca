// The step of offloading without overlap, the order of ZeRO-Offload (arXiv 2101.06840) taken strictly: backward, all
// gradients down, the host step, all weights up, then the next forward. The baseline. Pure; any thread.
#pragma once

#include "headrace/graph/step_graph.h"
#include "headrace/graph/step_shape.h"

namespace headrace::graph {

// Copies take whole blocks; updates go by pieces. All gradients stay on the device until backward has ended: no slots.
StepGraph no_overlap_step(const StepShape& shape);

}  // namespace headrace::graph
