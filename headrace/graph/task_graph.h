// What a run does, as plain data: tasks on lanes and the edges between them. A policy builds it, the simulator and the
// executor run it, the trace records it. Owned by whoever built it; reading is safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/graph/vocabulary.h"

namespace headrace::graph {

inline constexpr int32_t kWholeModel = -1;   // block of a task that concerns no single block
inline constexpr int32_t kWholeStep = -1;    // micro-batch of a task done once a step
inline constexpr int32_t kWholeBlock = -1;   // piece of a task that concerns all of a block
inline constexpr int64_t kNoStaleness = -1;  // of a task that brings no gradient's update into the weights
inline constexpr int32_t kNoSlot = -1;       // slot of a task that fills or empties no shared buffer

struct Task {
  TaskKind kind = TaskKind::kForward;
  LaneKind lane = LaneKind::kCompute;
  int32_t block = kWholeModel;
  int32_t micro_batch = kWholeStep;
  int32_t piece = kWholeBlock;  // a range of the block's rows
  int64_t step = 0;
  int64_t bytes = 0;      // moved over a link, or touched by a host update; 0 for computation
  int64_t deadline = 0;   // rank, within its step, of the forward that needs it first; smaller is needed earlier
  int64_t due_steps = 0;  // [steps] after its own in which its deadline counts
  double cost_s = 0;      // [s] estimate, see assign_costs
  int64_t staleness = kNoStaleness;  // [steps] from its oldest gradient to the forward that first sees it
  int32_t slot = kNoSlot;  // which of the device's shared buffers it fills or empties, where the builder says so
};

// "forward(block 3, micro-batch 1, step 5)", "fetch(block 3, piece 0, step 5)"; with the lane where a kind of task is
// done on several: "adopt(block 3, step 5) on h2d".
std::string name_of(const Task& task);

// `to` starts only after `from` has ended. Indices into TaskGraph::tasks.
struct Edge {
  int32_t from = 0;
  int32_t to = 0;
  bool operator==(const Edge&) const = default;
};

struct TaskGraph {
  std::array<int32_t, kNumLaneKinds> num_lanes{};  // lanes of each kind; more than one only of host_update
  std::vector<Task> tasks;  // within a lane that runs in program order (compute, net) this is the order
  std::vector<Edge> edges;

  int32_t lanes_of(LaneKind lane) const { return num_lanes[static_cast<size_t>(lane)]; }
  void set_lanes(LaneKind lane, int32_t count) { num_lanes[static_cast<size_t>(lane)] = count; }
  // Appends and returns the task's index.
  int32_t add(const Task& task);
  void connect(int32_t from, int32_t to) { edges.push_back({from, to}); }
};

// Indices of the tasks at the other end of each task's edges, in order of the edges.
using Neighbours = std::vector<std::vector<int32_t>>;
Neighbours predecessors_of(const TaskGraph& graph);
Neighbours successors_of(const TaskGraph& graph);

// By task: the tasks of its kind, lane, block, micro-batch and step, itself among them; more than one are its pieces.
std::vector<int32_t> num_pieces_of(const TaskGraph& graph);

// The edges and, for lanes that run in program order, an edge from each task to the next of its lane.
std::vector<Edge> edges_with_program_order(const TaskGraph& graph);

// Tasks so that none comes before one it waits for, program order included; shorter than tasks when there is a cycle.
std::vector<int32_t> topological_order(const TaskGraph& graph);

}  // namespace headrace::graph
