#include "headrace/policy/zenflow/gradient_ledger.h"

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

int64_t GradientLedger::tokens() const {
  int64_t tokens = tokens_of_sum_;
  for (const Step& step : steps_) tokens += step.tokens;
  return tokens;
}

WindowParts GradientLedger::so_far() const {
  WindowParts window;
  if (steps_.empty()) return window;
  window.mean_scale = static_cast<float>(static_cast<double>(first_tokens()) / static_cast<double>(tokens()));
  if (sum_ == WindowSum::kRunning) {
    window.parts.push_back({next_slot_, 1});
  } else {
    for (const Step& step : steps_) window.parts.push_back({step.slot, step.scale});
  }
  return window;
}

WindowParts GradientLedger::end_window() {
  WindowParts window = so_far();
  if (sum_ == WindowSum::kRunning) next_slot_ = 1 - next_slot_;
  steps_.clear();
  tokens_of_sum_ = 0;
  return window;
}

void GradientLedger::restore(int64_t first_tokens, int64_t tokens) {
  if (first_tokens == 0) return;
  steps_ = {{0, 1, first_tokens}};
  tokens_of_sum_ = tokens - first_tokens;
  if (sum_ == WindowSum::kSlots) next_slot_ = 1 % num_slots_;
}

}  // namespace headrace::policy::zenflow
