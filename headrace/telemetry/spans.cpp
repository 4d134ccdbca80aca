#include "headrace/telemetry/spans.h"

namespace headrace::telemetry {

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, kNumPhases> names{"data_wait", "forward", "backward", "update",
                                                           "stall",     "eval",    "save"};
  return names[static_cast<size_t>(phase)];
}

void PhaseTimes::end_step() {
  last_step_s_ = clock_() - step_begin_s_;
  steps_s_ += last_step_s_;
  ++num_steps_;
}

double PhaseTimes::steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace headrace::telemetry
