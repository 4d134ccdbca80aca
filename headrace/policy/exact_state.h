// The state of a block whose elements were all updated equally often, as tensors (state.h) and back: what the resident
// and the offload policy hold. Free of torch; the trainer thread, with nothing under way.
#pragma once

#include <cstdint>

#include "headrace/device/device.h"
#include "headrace/model/model.h"
#include "headrace/optim/parameter_groups.h"
#include "headrace/policy/state.h"

namespace headrace::policy {

struct ExactBlock {
  const model::BlockSpec& spec;
  const optim::ParameterGroups& groups;
  float* master;  // [spec.numel]
  float* m;       // [groups.state_numel], likewise v
  float* v;
  device::Device* device = nullptr;  // in whose memory they are; null: in the host's
};

// `updates`: how often the block's trained elements were updated.
void save_exact_block(const ExactBlock& block, int64_t updates, PolicyState& state);

// Masters and moments; gaps stay as they are. Throws DataError for what is missing or of another shape.
void restore_exact_block(const ExactBlock& block, const StateReader& saved);

// How often every trained element of the model was updated. Where ZenFlow updated columns not equally often, or holds
// gradients of a window back, an exact policy cannot go on as ZenFlow would: throws ConfigError unless that is
// accepted, and then says what is lost; the largest count is taken.
int64_t restore_exact_updates(const model::Model& model, const StateReader& saved, const RestoreOptions& options);

}  // namespace headrace::policy
