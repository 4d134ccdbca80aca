// One step while it runs: what each task still waits for, and when it ran. Plain bookkeeping of the executor, which
// holds its lock around every call.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "headrace/graph/step_graph.h"
#include "headrace/graph/step_index.h"
#include "headrace/graph/timeline.h"

namespace headrace::graph {

struct RunningStep {
  // `first_number` is the number of its first task in the run; the others follow.
  RunningStep(const StepGraph& step, int64_t step_number, int64_t first_number, int64_t called_ns);

  // Adds the edges from `earlier` steps, the last of them the one right before, to its tasks that have not ended. A
  // step that is no longer among them has ended and keeps nothing waiting. Throws InternalError, with nothing changed,
  // when one that is lacks a task that this step waits for.
  void wait_for(const std::deque<std::unique_ptr<RunningStep>>& earlier);

  const Task& task_at(int32_t index) const { return step.graph.tasks[static_cast<size_t>(index)]; }
  TaskRun& run_of(int32_t index) { return runs[static_cast<size_t>(index)]; }
  // One of what the task waits for has ended; true when that was the last.
  bool arrive(int32_t index) { return --num_missing[static_cast<size_t>(index)] == 0; }
  bool has_ended() const { return num_left == 0; }

  StepGraph step;
  int64_t first_number;
  int64_t called_ns;  // when the trainer handed the step over
  StepIndex names;
  Neighbours successors;                               // by task, in this step
  std::vector<std::vector<int64_t>> later_successors;  // by task, in later steps: by number in the run
  std::vector<int32_t> num_missing;
  std::vector<bool> task_has_ended;
  std::vector<TaskRun> runs;
  int64_t num_left;  // tasks that have not ended
};

}  // namespace headrace::graph
