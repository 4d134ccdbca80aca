// The host's share of an optimizer step: AdamW over a stretch of one block, by one host worker.
#pragma once

#include <cstdint>

#include "headrace/device/pace.h"
#include "headrace/kernel/adamw.h"
#include "headrace/optim/parameter_groups.h"
#include "headrace/policy/offload_storage.h"

namespace headrace::policy {

// [bytes] of memory that the update of one element reads and writes, all in fp32: gradient in; master, m and v both.
inline constexpr int64_t kHostUpdateBytes = 4 * (1 + 3 + 3);

// Updates the trained elements of [begin, end) of the block, exactly as optim::adamw_step does on the whole block.
// `step.weight_decay` holds for groups that decay. `pace` slows the worker down to an imitated host's rate.
// Any thread; disjoint stretches at a time.
void update_on_host(const optim::ParameterGroups& groups, const HostBlock& block, int64_t begin, int64_t end,
                    kernel::AdamWStep step, device::Pace& pace);

}  // namespace headrace::policy
