// The learning rate of each step. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace headrace::optim {

enum class ScheduleKind { kConstant, kLinear, kCosine, kWarmupStableDecay };

// "constant", "linear", "cosine", "wsd". Throws ConfigError listing them.
ScheduleKind parse_schedule(std::string_view word);

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kCosine;
  double peak = 2e-5;        // learning rate after the warm-up
  int64_t total_steps = 1;   // >= 1
  int64_t warmup_steps = 0;  // linear from peak/warmup_steps at step 0 to peak at step warmup_steps - 1
  int64_t decay_steps = 0;   // wsd only: the last steps, in which the rate falls linearly; 0: a tenth of all
  double floor_ratio = 0;    // linear, cosine, wsd end at peak * floor_ratio
};

// Rate of 0-based `step`. The decaying schedules reach the floor one step after the last, so that no step is wasted on
// a rate of zero. Beyond the last step the floor.
double learning_rate(const ScheduleConfig& config, int64_t step);

}  // namespace headrace::optim
