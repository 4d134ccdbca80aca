// What offloading costs in the ideal, in closed form: links that take no time, many equal blocks. The simulator
// approaches these as blocks get smaller; the planner chooses by them. Pure; any thread.
#pragma once

namespace headrace::graph {

// [s] per step: forward and backward of all blocks and micro-batches, and the host update of the whole model with all
// host lanes at work. recompute counts to backward.
struct StepCosts {
  double forward_s = 0;
  double backward_s = 0;
  double host_update_s = 0;
};

// All functions return the stall [s] per step: time in which the compute lane is idle.

// No overlap: the compute lane waits for the whole update and for both links, here with their time.
double stall_without_overlap(const StepCosts& costs, double links_s = 0);

// Exact overlap, no clip, updates in deadline order: backward and the next forward both hide the update.
double stall_in_deadline_order(const StepCosts& costs);

// Exact overlap, no clip, updates in arrival order: the block needed first is updated last, so only backward hides it.
double stall_in_arrival_order(const StepCosts& costs);

// Exact overlap, exact global-norm clip: no update starts before backward ends, so only the next forward hides them.
// `device_share` of the blocks, the first ones, are updated on the device [0..1].
double stall_with_global_clip(const StepCosts& costs, double device_share = 0);

// The smallest device share with which the exact global-norm clip causes no stall [0..1].
double device_share_without_stall(const StepCosts& costs);

}  // namespace headrace::graph
