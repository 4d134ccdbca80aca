#include <algorithm>
#include <cstdio>
#include <memory>

#include "headrace/base/json.h"
#include "headrace/cli/bench_offload.h"
#include "headrace/cli/bench_torch.h"
#include "headrace/cli/command.h"
#include "headrace/cli/exit_code.h"
#include "headrace/measure/adamw.h"
#include "headrace/os/cpu_facts.h"

namespace headrace::cli {
namespace {

OrderedJson json_of(const measure::AdamWRow& row) {
  return {{"variant", row.variant},
          {"threads", row.threads},
          {"bytes_per_param", row.bytes_per_param},
          {"mparam_per_s", row.mparam_per_s},
          {"mparam_per_s_quartiles", {row.mparam_per_s_quartiles[0], row.mparam_per_s_quartiles[1]}},
          {"gb_per_s", row.gb_per_s},
          {"triad_gb_per_s", row.triad_gb_per_s},
          {"share_of_triad", row.share_of_triad}};
}

int run_adam(measure::AdamWSetting setting, bool json) {
  if (setting.threads.empty()) {
    setting.threads = {1};
    if (os::allowed_cpus() > 1) setting.threads.push_back(os::allowed_cpus());
  }
  const std::vector<measure::AdamWRow> rows = measure::adamw(setting, {torch_fused_adamw()});
  std::FILE* table = json ? stderr : stdout;
  std::fprintf(table, "%-45s %7s %11s %12s %7s %9s\n", "variant", "threads", "bytes/param", "Mparam/s", "GB/s",
               "of triad");
  for (const measure::AdamWRow& row : rows) {
    std::fprintf(table, "%-45s %7d %11.0f %12.1f %7.2f %8.1f%%\n", row.variant.c_str(), row.threads,
                 row.bytes_per_param, row.mparam_per_s, row.gb_per_s, 100 * row.share_of_triad);
  }
  if (!json) return kDone;
  OrderedJson out{{"parameters", setting.parameters}, {"repeats", setting.repeats}, {"cpu", os::cpu_model_name()}};
  for (const measure::AdamWRow& row : rows) out["rows"].push_back(json_of(row));
  std::printf("%s\n", out.dump().c_str());
  return kDone;
}

}  // namespace

Run add_bench(CLI::App& app) {
  app.require_subcommand(1);
  CLI::App* adam =
      app.add_subcommand("adam", "The host's AdamW beside a triad of the same bytes and torch's fused AdamW");
  const auto setting = std::make_shared<measure::AdamWSetting>();
  setting->threads.clear();
  adam->add_option("--params", setting->parameters, "parameters updated in each pass")->capture_default_str();
  adam->add_option("--repeats", setting->repeats, "timed rounds")->capture_default_str();
  adam->add_option("--threads", setting->threads, "numbers of threads to time, 1,2 for example; default: one and all")
      ->delimiter(',');
  const auto adam_json = std::make_shared<bool>(false);
  adam->add_flag("--json", *adam_json, "print one JSON object as the last line of standard output");
  CLI::App* offload = app.add_subcommand("offload", "Step time, stall and bytes of offloading, on the emulated device");
  const Run run_offload = add_bench_offload(*offload);
  return [=](bool json) { return offload->parsed() ? run_offload(json) : run_adam(*setting, json || *adam_json); };
}

}  // namespace headrace::cli
