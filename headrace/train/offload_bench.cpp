#include "headrace/train/offload_bench.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/device/cores.h"
#include "headrace/graph/regimes.h"
#include "headrace/train/offload_bench_cell.h"
#include "headrace/train/offload_bench_workload.h"
#include "headrace/train/offload_bench_zenflow.h"

namespace headrace::train {
namespace {

constexpr const char* kPlace = "bench.offload";
constexpr int64_t kResidentSteps = 3;  // timed, before the cells of each ratio

void require(bool is_right, const std::string& text) {
  if (!is_right) throw ConfigError(kPlace, text);
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void require_words(const std::vector<std::string>& words, const char* flag, const std::vector<std::string>& choices) {
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
  require(!words.empty(), std::string(flag) + " is empty. Name some of: " + list + ".");
  for (const std::string& word : words) {
    require(has(choices, word), std::string(flag) + " has \"" + word + "\", which is none of: " + list + ".");
  }
}

// [0..1], or -1 for "auto". Throws for anything else.
double share_of(const std::string& text) {
  if (text == "auto") return -1;
  double share = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  require(is_number && share >= 0 && share <= 1,
          "--device-share is \"" + text + "\". Give auto or a number from 0 to 1.");
  return share;
}

double device_share(const OffloadBenchSettings& settings, const ResidentBaseline& resident) {
  const double share = share_of(settings.device_share);
  if (share >= 0) return share;
  return graph::device_share_without_stall({resident.forward_s, resident.backward_s, resident.host_update_s()});
}

std::vector<BenchCell> offload_cells(const std::string& policy, bool clip, const OffloadBenchSettings& settings,
                                     const ResidentBaseline& resident) {
  std::vector<BenchCell> cells = {{.policy = policy, .clip = clip}};
  const double share = device_share(settings, resident);
  if (policy == "exact" && clip && share > 0) cells.push_back({policy + "+share", true, share});
  return cells;
}

std::string text_of(const std::string& policy, bool clip, double host_ratio) {
  char text[96];
  std::snprintf(text, sizeof text, "C/(Tf+Tb) %.3g, %s, clip %s", host_ratio, policy.c_str(), clip ? "on" : "off");
  return text;
}

StepStarts progress(const OffloadBenchOptions& options, const std::string& what) {
  return [&options, what](int64_t step, int64_t num_steps) {
    if (!options.on_progress) return;
    options.on_progress(what + ": step " + std::to_string(step + 1) + "/" + std::to_string(num_steps));
  };
}

// All cells of a host of one speed.
struct Bench {
  const BenchWorkload& workload;
  const OffloadBenchSettings& settings;
  const OffloadBenchOptions& options;
  const ResidentBaseline& resident;

  void measure_all(std::vector<OffloadBenchRow>& rows) const {
    for (const std::string& clip : settings.clip) {
      for (const std::string& policy : settings.policies) {
        is_zenflow(policy) ? measure_zenflow_cells(policy, clip == "on", rows)
                           : measure_offload_cells(policy, clip == "on", rows);
      }
    }
  }

  void measure_offload_cells(const std::string& policy, bool clip, std::vector<OffloadBenchRow>& rows) const {
    for (const BenchCell& cell : offload_cells(policy, clip, settings, resident)) {
      const StepStarts on_step = progress(options, text_of(cell.policy, clip, resident.host_ratio));
      rows.push_back(measure_cell(workload, cell, resident, settings.steps, on_step, options));
    }
  }

  void measure_zenflow_cells(const std::string& policy, bool clip, std::vector<OffloadBenchRow>& rows) const {
    if (policy == kControlPolicy || clip != has(settings.clip, "on")) return;
    for (const ZenflowCell& cell : zenflow_cells(policy, clip, settings, resident)) {
      const StepStarts on_step = progress(options, text_of(cell.policy, clip, resident.host_ratio));
      for (OffloadBenchRow& row : measure_zenflow(workload, cell, resident, settings, on_step, options)) {
        rows.push_back(std::move(row));
      }
    }
  }
};

OffloadBenchResult describe(const OffloadBenchSettings& settings, const BenchWorkload& workload) {
  OffloadBenchResult result;
  const std::string compute = device::text_of(workload.cores().compute), host = device::text_of(workload.cores().host);
  result.device =
      "emulated: an accelerator imitated on the CPU; compute on cores " + compute + ", host on cores " + host;
  result.model = workload.name();
  result.parameters = workload.model().num_parameters();
  result.blocks = workload.model().num_blocks();
  int64_t largest = 0;
  for (const model::BlockSpec& block : workload.model().blocks()) largest = std::max(largest, block.numel);
  result.largest_block_share = static_cast<double>(largest) / static_cast<double>(workload.numel());
  result.tokens = workload.tokens();
  result.compute_cores = compute;
  result.host_cores = host;
  result.link_share = settings.link_share;
  result.model_bytes = kFloatBytes * workload.numel();
  return result;
}

}  // namespace

void validate(const OffloadBenchSettings& settings) {
  require_words(settings.policies, "--policies",
                {"none", "exact", "exact-in-order", "zenflow", "zenflow-running", kControlPolicy});
  require(!has(settings.policies, kControlPolicy) || has(settings.policies, "zenflow"),
          "--policies has zenflow-free, the control of zenflow, without it. Name zenflow too.");
  require_words(settings.clip, "--clip", {"on", "off"});
  require(!settings.host_ratios.empty(), "--host-ratios is empty. Give some, 0.25,0.5,1,2 for example.");
  for (const double ratio : settings.host_ratios) {
    require(std::isfinite(ratio) && ratio > 0,
            "--host-ratios has " + std::to_string(ratio) + ": the host's time over the device's is above 0.");
  }
  require(settings.tokens >= 2, "--tokens is " + std::to_string(settings.tokens) + ". A step needs at least 2.");
  require(settings.steps >= 1, "--steps is " + std::to_string(settings.steps) + ". Time at least 1.");
  require(settings.topk > 0 && settings.topk <= 1,
          "--topk is " + std::to_string(settings.topk) + ": a share above 0, at most 1, is important.");
  require(settings.max_interval >= 1,
          "--max-interval is " + std::to_string(settings.max_interval) + ". A window has at least 1 step.");
  require(std::isfinite(settings.link_share) && settings.link_share > 0,
          "--link-share is " + std::to_string(settings.link_share) + ": crossing the link takes some time, above 0.");
  share_of(settings.device_share);
}

OffloadBenchResult bench_offload(const OffloadBenchSettings& settings, const OffloadBenchOptions& options) {
  validate(settings);
  if (options.on_progress) options.on_progress("making the model");
  const BenchWorkload workload(settings);
  OffloadBenchResult result = describe(settings, workload);
  for (const double ratio : settings.host_ratios) {
    const ResidentBaseline resident =
        measure_resident(workload, ratio, settings.link_share, std::min(settings.steps, kResidentSteps),
                         progress(options, text_of("resident", true, ratio)));
    Bench{workload, settings, options, resident}.measure_all(result.rows);
  }
  return result;
}

}  // namespace headrace::train
