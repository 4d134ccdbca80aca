// How the ZenFlow policy is to work. Plain data; keys are named as DeepSpeed names them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "headrace/graph/step_shape.h"
#include "headrace/policy/step.h"
#include "headrace/policy/zenflow/auto_interval.h"
#include "headrace/policy/zenflow/gradient_ledger.h"
#include "headrace/policy/zenflow/schedule.h"

namespace headrace::policy {

// The rate of a deferred update, which comes S times less often than an important one: that of its window's steps,
// times 1, the root of S or S.
enum class DeferredRate { kPlain, kSqrt, kLinear };

struct ZenFlowSettings {
  OptimizerSettings optimizer = {};
  bool recompute = false;                                     // keep only block inputs between forward and backward
  std::function<bool(std::string_view name)> is_frozen = {};  // parameters that stay as they are; empty: none

  double topk_ratio = 0.1;                  // k, share of each matrix's columns that are important (0..1]
  zenflow::ScheduleSettings schedule = {};  // S, U, R
  bool auto_interval = false;               // S follows the host, from schedule.update_interval on
  zenflow::IntervalLimits limits = {};      // of S when it does; the largest bounds it always
  double select_margin = 1.25;  // how many times another column's score must be better for it to take a place, >= 1
  DeferredRate deferred_rate = DeferredRate::kPlain;
  zenflow::WindowSum window_sum = zenflow::WindowSum::kSlots;

  int64_t device_budget = 0;      // [bytes] of everything on the device; 0: no limit
  int64_t host_budget = 0;        // [bytes] of everything on the host; 0: no limit
  int32_t num_device_blocks = 0;  // the first blocks, all of whose columns are important
  graph::ComputeOrder order = graph::ComputeOrder::kMicroBatchMajor;
  bool shares_gradient =
      false;  // blocks share one buffer for the gradient under way; layer by layer, or one micro-batch

  int32_t host_workers = 1;       // >= 1
  double host_bytes_per_s = 0;    // of all workers together; imitates a slower host. 0: as fast as it is
  int64_t piece_bytes = 4 << 20;  // [bytes of weights] that travel and are updated at a time, > 0
  double deadline_s = 60;         // a lane's task that takes longer ends the run
  int64_t recorded_steps = 0;     // of which the trace is kept
};

}  // namespace headrace::policy
