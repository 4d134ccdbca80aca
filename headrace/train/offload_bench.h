// What offloading costs: step time, stall, bytes and memory of the offload and the ZenFlow policy over hosts of several
// speeds, each beside everything resident and beside what the simulator says. On the emulated device, whose host and
// links are as fast as the settings say; real work on real memory. `headrace bench offload` prints it.
//
// ZenFlow's windows are the shortest that such a host can follow (plan/zenflow.h), as policy "auto" settles at; where
// none is, the longest, and a row more with the optimizer state of the first blocks on the device. Its timed steps
// begin when all buffers of windows have been used, and are whole windows with a selection of columns in them. Its
// control, "zenflow-free": resident steps while links and host workers do all that they did in the ZenFlow run's timed
// steps, task by task with its bytes and its pace, on memory of their own, and nobody waits for them. What it has above
// 1 in compute_slowdown is the emulation's own (host and device share one memory), not ZenFlow's; `work` says where the
// rest of a ZenFlow step goes. Threads: the caller is the trainer and compute lane; policies start their own
// (policy/offload.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/graph/executor.h"
#include "headrace/graph/stall.h"

namespace headrace::train {

// The control of "zenflow".
inline constexpr const char* kControlPolicy = "zenflow-free";

struct OffloadBenchSettings {
  // "none", "exact", "exact-in-order": exact without sending the embedding's needed rows first; "zenflow": a window's
  // gradients stay in slots, "zenflow-running": they are added to a running sum; "zenflow-free": the control of
  // "zenflow".
  std::vector<std::string> policies = {"none", "exact"};
  std::vector<double> host_ratios = {0.25, 0.5, 1, 2};  // C / (T_f + T_b), > 0
  // By the exact global norm. ZenFlow's host waits for it in any case: one row, "on" where that is among these.
  std::vector<std::string> clip = {"off", "on"};
  std::filesystem::path model;  // a folder whose config.json gives the shape; empty: our own
  int64_t tokens = 192;         // of the step's one micro-batch, >= 2
  int64_t steps = 5;            // timed ones of each cell, >= 1; at least, with ZenFlow
  double topk = 0.1;            // k: share of columns that ZenFlow updates on the device (0..1]
  int64_t max_interval = 8;     // S_max [steps] >= 1
  // Optimizer state kept on the device, in rows of their own for "exact" with clipping and for ZenFlow: "auto" is the
  // smallest share with which the closed form has no stall, none where it has none anyway; else a number [0..1], 0 for
  // no such rows.
  std::string device_share = "auto";
  double link_share = 0.1;  // time in which all weights cross one direction of the link, over T_f + T_b; > 0
};

// Everything resident, measured anew for each ratio, and the rates set from it.
struct ResidentBaseline {
  double host_ratio = 0;
  double step_time_s = 0;       // of policy::Resident: forward, backward, norm and update
  double forward_s = 0;         // T_f
  double backward_s = 0;        // T_b, with the loss
  double host_bytes_per_s = 0;  // of all host workers together
  double link_bytes_per_s = 0;  // of each direction

  double compute_s() const { return forward_s + backward_s; }
  double host_update_s() const { return host_ratio * compute_s(); }  // C
};

struct LaneBytes {
  double h2d = 0, d2h = 0, host_update = 0;  // [bytes] a step

  LaneBytes operator-(const LaneBytes& other) const {
    return {h2d - other.h2d, d2h - other.d2h, host_update - other.host_update};
  }
  LaneBytes operator/(double steps) const { return {h2d / steps, d2h / steps, host_update / steps}; }
};
struct TierBytes {
  int64_t device = 0, host = 0;
};
struct StepForecast {
  double step_time_s = 0, stall_share = 0;
};

// [s] a step that tasks took: all on the compute lane but the last, which sums over host workers.
struct WorkSeconds {
  double forward_s = 0, backward_s = 0, reduce_s = 0, device_update_s = 0, merge_s = 0, exchange_s = 0, host_s = 0;
};

// What only a ZenFlow row has.
struct ZenflowFigures {
  int64_t update_interval = 1;  // S [steps]
  bool has_slots = true;
  double topk = 0;            // k
  int64_t deferred = 0;       // [elements] of all blocks
  double host_floor = 0;      // the host's work for a window over the window's time, by the formula
  double staleness_mean = 0;  // [steps] of deferred gradients
  int64_t staleness_max = 0;  // [steps]
  double churn = 0;           // of the last selection: columns that changed sides over important ones
};

// One cell: a policy with a host of one speed, clipping on or off.
struct OffloadBenchRow {
  std::string policy;  // one of the settings', "+share" added where blocks are on the device
  bool clip = false;
  int32_t device_blocks = 0;  // first blocks whose optimizer state is on the device
  double device_share = 0;    // of the optimizer state that is there
  ResidentBaseline resident;

  double step_time_s = 0;            // mean of the timed steps
  std::vector<double> step_times_s;  // each of them
  graph::StallTable stall;           // over the timed steps
  WorkSeconds work;
  StepForecast predicted;  // simulated with this run's own task times: what the executor's overhead adds is missing
  StepForecast ideal;      // simulated with this run's compute times and lanes as fast as they were set
  double closed_form_stall_s = 0;
  LaneBytes bytes, bytes_formula;
  LaneBytes exchanged;   // of bytes: state of columns that changed sides at a selection, which no formula foresees
  TierBytes peak, plan;  // zeros for "zenflow-free"
  std::optional<ZenflowFigures> zenflow;

  double practicality() const { return resident.step_time_s / step_time_s; }
  // Forward and backward over what they take with everything resident: well above 1 where something else was running
  // on the machine.
  double compute_slowdown() const { return (work.forward_s + work.backward_s) / resident.compute_s(); }
};

struct OffloadBenchResult {
  std::string device;  // one line, says "emulated"
  std::string model;
  int64_t parameters = 0, blocks = 0;
  double largest_block_share = 0;  // of the parameters
  int64_t tokens = 0;
  std::string compute_cores, host_cores;
  double link_share = 0;
  int64_t model_bytes = 0;  // M: of all weights in fp32, as they travel
  std::vector<OffloadBenchRow> rows;
};

struct OffloadBenchOptions {
  std::function<void(const std::string& text)> on_progress = {};  // before each step: where the bench is
  std::function<void(const OffloadBenchRow& row, const graph::Recording& recording)> on_cell = {};
};

// Throws ConfigError naming the setting that is out of range. Pure.
void validate(const OffloadBenchSettings& settings);

// Pins the calling thread while it runs and sets libtorch's threads to the number of compute cores. Needs about 20
// bytes of memory a parameter, with ZenFlow's slots 24 + 8 S. Throws like validate, DataError for the model's folder,
// CapacityError.
OffloadBenchResult bench_offload(const OffloadBenchSettings& settings, const OffloadBenchOptions& options);

}  // namespace headrace::train
