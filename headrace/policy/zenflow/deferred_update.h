// What a host worker does for deferred columns: adds an arrived gradient to a running sum, updates a window, and
// updates columns early that are about to leave for the device. Any thread; the step graph orders calls on one piece.
#pragma once

#include <cstdint>

#include "headrace/device/pace.h"
#include "headrace/policy/zenflow/columns.h"
#include "headrace/policy/zenflow/step_plan.h"
#include "headrace/policy/zenflow/storage.h"

namespace headrace::policy::zenflow {

// [bytes] of host memory that the update of one element reads and writes, for a window of so many parts.
constexpr int64_t window_update_bytes(int64_t parts) { return 4 * (6 + parts); }
// Likewise of adding one step's gradient to a running sum.
constexpr int64_t accumulate_bytes(bool is_first) { return is_first ? 8 : 12; }

struct DeferredPiece {
  const BlockColumns& block;
  size_t index;  // of the piece
  const DeferredPart& part;
  const Piece& piece() const { return block.pieces[index]; }
};

// sum = gradient * scale, or sum + that. Returns the bytes touched.
int64_t add_to_running_sum(const DeferredPiece& at, const BlockPlan& plan, device::Pace& pace);

// One AdamW update of every deferred column of the piece with its window's mean gradient. Then columns that have left
// the device take the places of those that went there. Returns the bytes touched.
int64_t update_window(const DeferredPiece& at, const WindowUpdate& update, device::Pace& pace);

// The same update for the columns that go to the device alone, into `coming`; their old place is left as it is.
void update_early(const DeferredPiece& at, const WindowUpdate& update);

}  // namespace headrace::policy::zenflow
