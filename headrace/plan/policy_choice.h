// Which policy a run should have: exact while that hardly stalls, exact with optimizer state on the device where there
// is room for it, else ZenFlow with the shortest windows that the host can follow. From what a step is expected to
// take. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace headrace::plan {

struct ChoiceRequest {
  double forward_s = 0, backward_s = 0;  // T_f, T_b [s] of a step, expected
  double host_update_s = 0;              // C [s]: an exact update of all parameters by all host workers, expected
  bool clips = true;                     // by the global norm, or waits for the whole gradient as if
  double device_share = 0;               // of the optimizer state for which the device has room [0..1]
  double topk_ratio = 0.1;               // k
  int64_t longest_interval = 8;          // S_max [steps]
  bool has_slots = true;                 // the host has room for a window's gradients
};

enum class ChosenPolicy { kExact, kExactWithShare, kZenFlow };

struct PolicyChoice {
  ChosenPolicy policy = ChosenPolicy::kExact;
  double device_share = 0;      // of the optimizer state that stays on the device
  int64_t update_interval = 1;  // with ZenFlow
  double stall_share = 0;       // expected [0..1]
  // What was expected, what follows, what was chosen: one line each.
  std::array<std::string, 3> reasons;
};

// Stall shares below this are not worth changing the maths for.
inline constexpr double kSmallStall = 0.02;

// Times > 0.
PolicyChoice choose_policy(const ChoiceRequest& request);

}  // namespace headrace::plan
