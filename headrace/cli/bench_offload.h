// headrace bench offload: what offloading costs, beside the resident policy and the simulator.
#pragma once

#include "headrace/cli/command.h"

namespace headrace::cli {

Run add_bench_offload(CLI::App& app);

}  // namespace headrace::cli
