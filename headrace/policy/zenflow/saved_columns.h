// A block's columns as tensors (policy/state.h) and back. Beside what every policy saves, for a matrix, by the
// parameter's name:
//   important/<name>, deferred/<name>  int32: channels by position
//   score/<name>                       fp64 [channels]: smoothed scores
//   window/<name>                      fp32 in the parameter's shape: sum of the window's gradients so far, zero where
//                                      columns are important; only within a window
//   seen/<name>                        fp32 likewise: the weights that the next forward sees, only where an update is
//                                      under way, which master/<name> has already
// The trainer thread, with nothing under way on the lanes; save_* any thread while nothing changes that part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/model/spec.h"
#include "headrace/policy/state.h"
#include "headrace/policy/zenflow/column_score.h"
#include "headrace/policy/zenflow/columns.h"
#include "headrace/policy/zenflow/step_plan.h"
#include "headrace/policy/zenflow/storage.h"

namespace headrace::policy::zenflow {

struct SavedBlock {
  const model::BlockSpec& spec;
  BlockColumns& columns;
  std::vector<ColumnScore>& scores;  // by matrix
  float* weights;                    // whole, on the device
  ImportantPart important;           // on the device
  const DeferredPart& deferred;
  device::Device& device;
};

// What the device has of the block, with room for the rest; `is_under_way`: an update of the host is not yet merged.
void save_device_part(const SavedBlock& block, bool is_under_way, PolicyState& state);
// Then the rest; `window`: what the ledger has of it.
void save_host_part(const SavedBlock& block, const WindowParts& window, PolicyState& state);

// [bytes] of a matrix's tensors, at most, besides what every policy saves.
int64_t extra_saved_bytes(const MatrixColumns& matrix);

struct Sides {
  std::vector<int32_t> important, deferred;  // channels by position
};
// By matrix; empty when a policy without sides saved the state. Throws DataError.
std::vector<Sides> saved_sides(const SavedBlock& block, const StateReader& saved);

// Counters, masters, moments and scores to where the sides of `block` want them; the sum of a window to the first
// gradient buffer. `score_weight` is that of ColumnScore. Throws DataError.
void restore_counters(const SavedBlock& block, const StateReader& saved);
void restore_scores(const SavedBlock& block, const StateReader& saved, double score_weight);
void restore_values(const SavedBlock& block, const StateReader& saved);

// The best by score become important, as many as are; both sides in order of channels.
void choose_by_score(MatrixColumns& matrix, std::span<const double> scores);

// What the saved masters, moments and counters would be had the window ended: into `applied`. The sides of `block` are
// the saved ones; `update` is for them.
void apply_saved_window(const SavedBlock& block, const WindowUpdate& update, const StateReader& saved,
                        PolicyState& applied);

}  // namespace headrace::policy::zenflow
