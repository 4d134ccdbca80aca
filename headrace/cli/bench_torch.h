// torch's fused CPU AdamW as a contender of `headrace bench adam`: apart, so that the rest needs no torch header.
#pragma once

#include "headrace/measure/adamw.h"

namespace headrace::cli {

// fp32 throughout. Sets libtorch's number of threads when it runs.
measure::Contender torch_fused_adamw();

}  // namespace headrace::cli
