// The step of ZenFlow (arXiv 2505.12242, section 3). Important columns are updated on the device at every step; of the
// others, the deferred ones, gradients go down at every step and the host applies them window by window while the
// device computes on. A merge stands at its place in the step's program: the device waits there for a late update
// rather than compute with weights that are too old. Which step does what is the policy's. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/graph/step_graph.h"
#include "headrace/graph/step_shape.h"

namespace headrace::graph {

// Where in a step the weights of a block's updated window come into the device's.
enum class Merge : uint8_t {
  kNone,
  kBeforeForward,  // before the block's first forward: of the step before it is an update that nothing overlaps
  kAfterBackward   // after the block's last backward: update and upload had this and all steps between to end
};

// One block in one step. Bytes are of all its pieces together. "Steps back" are those of PreviousTask.
struct ZenflowBlock {
  int64_t weight_bytes = 0;    // up at a merge: deferred columns only
  int64_t gradient_bytes = 0;  // down at every step: likewise
  int64_t update_bytes = 0;    // touched by the host update of a window
  // Touched by adding one step's gradient to the running sum of its window; 0: the window's gradients stay where they
  // arrived, in slots, and the host update sums them.
  int64_t accumulate_bytes = 0;
  int64_t exchange_bytes = 0;  // of columns' state, each way, when it migrates
  int32_t num_pieces = 1;      // >= 0, the same at every step; 0: nothing is deferred
  bool flushes = false;        // the window ends with this step
  int64_t due_steps = 0;  // if so, how many steps on its merge stands: 0: before the next forward, else after backward
  Merge merge = Merge::kNone;        // in this step
  int64_t merge_from = 1;            // if any, steps back to the host update it brings
  int64_t staleness = kNoStaleness;  // likewise, what the merge's tasks carry as Task::staleness
  bool migrates = false;             // at the end of this step columns change sides
  bool adopts = false;               // it did so at the end of the step before
  int64_t slot_freed_by = 0;  // steps back to the host update that read last what this gradient goes into, its slot or
                              // the sum it is added to; 0: that is free
  // With a running sum: the step before added its gradient too, from the one buffer in which they arrive.
  bool has_accumulated = true;
};

struct ZenflowShape {
  StepShape step;                    // its blocks are not looked at; no gradient slots, no needed share
  std::vector<ZenflowBlock> blocks;  // in forward order
  int32_t send_slots = 4;            // >= 1 buffers on the device, each of one piece on its way down
  int32_t staging_slots = 4;         // >= 1 likewise on its way up
  bool after_drain = false;          // all that was handed over before has ended: nothing is waited for
};

// Program of the compute lane: the step's forwards, before the first of each block its merge and then what it adopts;
// its backwards, after the last of each block the reduce of each piece and then its merge; the reduce of the whole
// model, always, on which all host work waits, since only then the gradient is known to be finite; device updates;
// releases. A reduce without pieces stands even where nothing is deferred.
// Task::slot tells the buffer of each task that fills or empties one. Those for sending go round in program order from
// the first backward on, a release's after the others'; those for staging from the first merge or adoption on.
// Deadlines of host work rank the next step: forward of block b is b, its backward 2 * blocks - 1 - b.
//
// What the policy owes: a block's host update, and a migration, come only when its last update's merge stands in this
// or an earlier step; a block migrates once a window at most, and adopts in the next step. A release's d2h ends in a
// buffer of its own, which the block's next host update empties; likewise what a host worker gathers for adoption.
// Host work of a step may run when later steps have their norm: what it reads of its own, clip factors and rates, is
// kept by step. The step before is one of the same kind unless after_drain. Throws InternalError when the shape is not
// sound.
StepGraph zenflow_step(const ZenflowShape& shape);

// No forward: brings to the device what is due, before an evaluation or at the end. Of blocks that flush, the host
// applies what has arrived of the window in the steps before, after the update that merge_from names (0: there is
// none), and the merge brings both; other merges, all kBeforeForward, bring the update they name; blocks adopt. Nothing
// migrates. The step after it must be after_drain.
StepGraph settling_step(const ZenflowShape& shape);

}  // namespace headrace::graph
