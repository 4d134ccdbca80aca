// What must hold of a run of ZenFlow steps at every moment, whichever lane was how slow.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "headrace/graph/timeline.h"
#include "tests/graph/zenflow_schedule.h"

namespace headrace::graph {

// Of what a name stands for, one use at a time.
class Uses {
 public:
  void add(const std::string& what, int64_t start_ns, int64_t end_ns, const std::string& user) {
    uses_[what].push_back({start_ns, end_ns, user});
  }
  // Two that overlap; empty when none do.
  std::string overlap() {
    for (auto& [what, uses] : uses_) {
      std::sort(uses.begin(), uses.end());
      for (size_t i = 1; i < uses.size(); ++i) {
        if (uses[i].start_ns < uses[i - 1].end_ns) return what + ": " + uses[i - 1].user + " and " + uses[i].user;
      }
    }
    return "";
  }

 private:
  struct Use {
    int64_t start_ns, end_ns;
    std::string user;
    auto operator<=>(const Use&) const = default;
  };
  std::map<std::string, std::vector<Use>> uses_;
};

class ZenflowCheck {
 public:
  ZenflowCheck(const TaskGraph& graph, const Timeline& timeline, const ZenflowSchedule& schedule)
      : graph_(graph), timeline_(timeline), schedule_(schedule) {
    for (size_t i = 0; i < graph.tasks.size(); ++i) {
      const Task& task = graph.tasks[i];
      index_[{task.kind, task.lane, task.block, task.piece, task.step}] = i;
    }
  }

  // The first thing that does not hold; empty when all does.
  std::string fault() {
    for (size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      note_device_buffers(task, run_of(i));
      note_host_memory(task, run_of(i));
      const TaskRun* norm = find(TaskKind::kReduce, LaneKind::kCompute, task, task.step, kWholeModel);
      if (task.lane == LaneKind::kHostUpdate && norm != nullptr && run_of(i).start_ns < norm->end_ns) {
        return name_of(task) + " before the norm";
      }
      if (task.kind == TaskKind::kFetch && !brings_the_last_update(i)) return name_of(task) + " brings another update";
    }
    return uses_.overlap();
  }

 private:
  const TaskRun& run_of(size_t index) const { return timeline_.runs[index]; }
  const TaskRun* find(TaskKind kind, LaneKind lane, const Task& like, int64_t step, int32_t block) const {
    const auto found = index_.find({kind, lane, block, block == kWholeModel ? kWholeBlock : like.piece, step});
    return found == index_.end() ? nullptr : &run_of(found->second);
  }
  const TaskRun* find(TaskKind kind, LaneKind lane, const Task& like, int64_t step) const {
    return find(kind, lane, like, step, like.block);
  }
  static std::string piece_of(const Task& task) {
    return "block " + std::to_string(task.block) + " piece " + std::to_string(task.piece);
  }

  // From the start of the task that fills it to the end of the one that empties it.
  void note_device_buffers(const Task& task, const TaskRun& run) {
    if (task.slot == kNoSlot) return;
    if (task.kind == TaskKind::kFetch || (task.kind == TaskKind::kAdopt && task.lane == LaneKind::kH2d)) {
      const TaskKind use = task.kind == TaskKind::kFetch ? TaskKind::kMerge : TaskKind::kAdopt;
      uses_.add("staging " + std::to_string(task.slot), run.start_ns,
                find(use, LaneKind::kCompute, task, task.step)->end_ns, name_of(task));
    }
    if (task.lane == LaneKind::kCompute && (task.kind == TaskKind::kReduce || task.kind == TaskKind::kRelease)) {
      const TaskKind copy = task.kind == TaskKind::kReduce ? TaskKind::kOffload : TaskKind::kRelease;
      uses_.add("send " + std::to_string(task.slot), run.start_ns, find(copy, LaneKind::kD2h, task, task.step)->end_ns,
                name_of(task));
    }
  }

  // The state that updates write; buffers in which gradients arrive; running sums.
  void note_host_memory(const Task& task, const TaskRun& run) {
    const bool is_host = task.lane == LaneKind::kHostUpdate;
    if (task.kind == TaskKind::kHostUpdate || task.kind == TaskKind::kFetch ||
        (task.kind == TaskKind::kAdopt && is_host)) {
      uses_.add("state of " + piece_of(task), run.start_ns, run.end_ns, name_of(task));
    }
    if (task.kind != TaskKind::kOffload) return;
    const ZenflowSettings& settings = schedule_.settings();
    const int64_t window = schedule_.window_of(task.block, task.step);
    const TaskRun* update =
        find(TaskKind::kHostUpdate, LaneKind::kHostUpdate, task, schedule_.last_step_of(task.block, window));
    const TaskRun* sum = find(TaskKind::kAccumulate, LaneKind::kHostUpdate, task, task.step);
    const TaskRun* reader = sum != nullptr ? sum : update;
    const int64_t slot = sum != nullptr ? 0 : task.step % settings.num_slots;
    uses_.add("arrival " + std::to_string(slot) + " of " + piece_of(task), run.start_ns,
              reader != nullptr ? reader->end_ns : run.end_ns, name_of(task));
    if (sum == nullptr || update == nullptr || task.step != schedule_.first_step_of(task.block, window)) return;
    uses_.add("sum " + std::to_string(window % settings.num_sums) + " of " + piece_of(task), sum->start_ns,
              update->end_ns, name_of(task));
  }

  // Of the block's host updates the last that starts before the fetch ends has ended when it starts, and is that of the
  // window whose merge is due.
  bool brings_the_last_update(size_t fetch) const {
    const Task& task = graph_.tasks[fetch];
    int64_t last = -1;
    for (const auto& [name, index] : index_) {
      const auto& [kind, lane, block, piece, step] = name;
      if (kind != TaskKind::kHostUpdate || block != task.block || piece != task.piece) continue;
      if (run_of(index).start_ns < run_of(fetch).end_ns || run_of(index).end_ns <= run_of(fetch).start_ns) {
        last = std::max(last, step);
      }
    }
    const bool is_own =
        find(TaskKind::kHostUpdate, LaneKind::kHostUpdate, task, task.step) != nullptr && last == task.step;
    int64_t window = schedule_.window_of(task.block, task.step);
    if (!is_own && schedule_.last_step_of(task.block, window) >= task.step) --window;
    return last >= 0 && last == schedule_.last_step_of(task.block, window) &&
           find(TaskKind::kHostUpdate, LaneKind::kHostUpdate, task, last)->end_ns <= run_of(fetch).start_ns;
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  const ZenflowSchedule& schedule_;
  std::map<std::tuple<TaskKind, LaneKind, int32_t, int32_t, int64_t>, size_t> index_;
  Uses uses_;
};

inline std::string zenflow_fault(const TaskGraph& graph, const Timeline& timeline, const ZenflowSchedule& schedule) {
  return ZenflowCheck(graph, timeline, schedule).fault();
}

inline void expect_zenflow_sound(const TaskGraph& graph, const Timeline& timeline, const ZenflowSchedule& schedule) {
  EXPECT_EQ(zenflow_fault(graph, timeline, schedule), "");
}

}  // namespace headrace::graph
