#include "headrace/policy/zenflow/gradient_ledger.h"

#include <utility>

namespace headrace::policy::zenflow {

Arrival GradientLedger::arrival() const { return {next_slot_, steps_.empty()}; }

float GradientLedger::scale(float clip_factor, int64_t trained_tokens) const {
  const int64_t first = steps_.empty() ? trained_tokens : steps_.front().tokens;
  return clip_factor * static_cast<float>(static_cast<double>(trained_tokens) / static_cast<double>(first));
}

void GradientLedger::enter(float clip_factor, int64_t trained_tokens) {
  steps_.push_back({next_slot_, scale(clip_factor, trained_tokens), trained_tokens});
  if (sum_ == WindowSum::kSlots) next_slot_ = (next_slot_ + 1) % num_slots_;
}

WindowParts GradientLedger::end_window() {
  const std::vector<Step> steps = std::exchange(steps_, {});
  int64_t tokens = 0;
  for (const Step& step : steps) tokens += step.tokens;
  WindowParts window;
  window.mean_scale = static_cast<float>(static_cast<double>(steps.front().tokens) / static_cast<double>(tokens));
  if (sum_ == WindowSum::kRunning) {
    window.parts.push_back({next_slot_, 1});
    next_slot_ = 1 - next_slot_;
    return window;
  }
  for (const Step& step : steps) window.parts.push_back({step.slot, step.scale});
  return window;
}

}  // namespace headrace::policy::zenflow
