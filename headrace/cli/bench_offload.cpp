#include "headrace/cli/bench_offload.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "headrace/cli/exit_code.h"
#include "headrace/graph/chrome_trace.h"
#include "headrace/os/file.h"
#include "headrace/train/offload_bench.h"
#include "headrace/train/offload_bench_report.h"

namespace headrace::cli {
namespace {

struct OffloadFlags {
  train::OffloadBenchSettings settings;
  std::filesystem::path trace;
  bool json = false;
};

// Rewritten in place on a terminal; elsewhere only when a cell begins.
void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
  } else if (text.find("step ") == std::string::npos || text.find("step 1/") != std::string::npos) {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

// "trace.json" of a cell: "trace-exact-0.5-clip.json".
std::filesystem::path trace_path(const std::filesystem::path& trace, const train::OffloadBenchRow& row) {
  char cell[64];
  std::snprintf(cell, sizeof cell, "-%s-%.3g-%s", row.policy.c_str(), row.resident.host_ratio,
                row.clip ? "clip" : "no_clip");
  std::filesystem::path path = trace;
  return path.replace_filename(trace.stem().string() + cell + trace.extension().string());
}

void write_trace(const std::filesystem::path& path, const train::OffloadBenchRow& row,
                 const graph::Recording& recording) {
  std::ostringstream text;
  graph::write_chrome_trace(text, recording.graph, recording.timeline, "offload " + row.policy + " (emulated)");
  os::write_file_atomically(path, text.str());
}

int run_offload(const OffloadFlags& flags) {
  train::OffloadBenchOptions options;
  options.on_progress = show_progress;
  if (!flags.trace.empty()) {
    options.on_cell = [&](const train::OffloadBenchRow& row, const graph::Recording& recording) {
      write_trace(trace_path(flags.trace, row), row, recording);
    };
  }
  const train::OffloadBenchResult result = train::bench_offload(flags.settings, options);
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K");
  std::fputs(text_of(result).c_str(), flags.json ? stderr : stdout);
  if (flags.json) std::printf("%s\n", train::to_json(result).dump().c_str());
  return kDone;
}

}  // namespace

Run add_bench_offload(CLI::App& app) {
  const auto flags = std::make_shared<OffloadFlags>();
  train::OffloadBenchSettings& settings = flags->settings;
  app.footer(train::setting_text());
  app.add_option("--policies", settings.policies,
                 "none (ZeRO-Offload's order), exact (exact overlap), exact-in-order (the same, the whole "
                 "embedding before its forward), zenflow (gradients of a window in slots), zenflow-running (in a "
                 "running sum), zenflow-free (zenflow's control: resident steps beside its traffic)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--host-ratios", settings.host_ratios, "time of the host's update over that of forward and backward")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--clip", settings.clip,
                 "on, off: clipping by the exact global norm; zenflow has one row, on where that is named")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--model", settings.model, "model folder whose shape to take; default: a Llama shape of 125M")
      ->type_name("DIR");
  app.add_option("--tokens", settings.tokens, "tokens a step")->capture_default_str();
  app.add_option("--steps", settings.steps, "timed steps a cell; zenflow: at least 16 and 2 S + 2, in whole windows")
      ->capture_default_str();
  app.add_option("--topk", settings.topk, "zenflow: share of columns updated on the device")->capture_default_str();
  app.add_option("--max-interval", settings.max_interval,
                 "zenflow: longest window; each host has the shortest that it can follow")
      ->capture_default_str();
  app.add_option("--device-share", settings.device_share,
                 "auto or 0..1: share of the optimizer state on the device in rows \"...+share\"; auto: the least that "
                 "removes the stall of clipping, or with which zenflow's longest windows do; 0: no such rows")
      ->capture_default_str();
  app.add_option("--link-share", settings.link_share,
                 "time in which all weights cross one direction of the link, over that of forward and backward")
      ->capture_default_str();
  app.add_option("--trace", flags->trace, "write a Chrome trace of each cell, its name added to FILE's")
      ->type_name("FILE");
  app.add_flag("--json", flags->json, "print one JSON object as the last line of standard output");
  return [flags](bool json) {
    flags->json = flags->json || json;
    return run_offload(*flags);
  };
}

}  // namespace headrace::cli
