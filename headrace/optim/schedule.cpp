#include "headrace/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "headrace/base/errors.h"

namespace headrace::optim {
namespace {

// How much of the way from peak to floor is done: 0 at the start of the decay, 1 at its end.
double decay_progress(int64_t step, int64_t begin, int64_t end) {
  if (end <= begin) return step >= end ? 1 : 0;
  return std::clamp(static_cast<double>(step - begin) / static_cast<double>(end - begin), 0.0, 1.0);
}

double share_of_peak(const ScheduleConfig& config, int64_t step) {
  switch (config.kind) {
    case ScheduleKind::kConstant:
      return 1;
    case ScheduleKind::kLinear:
      return 1 - decay_progress(step, config.warmup_steps, config.total_steps);
    case ScheduleKind::kCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * decay_progress(step, config.warmup_steps, config.total_steps)));
    case ScheduleKind::kWarmupStableDecay: {
      const int64_t length =
          config.decay_steps > 0 ? config.decay_steps : std::max<int64_t>(1, config.total_steps / 10);
      const int64_t begin = std::max(config.warmup_steps, config.total_steps - length);
      return 1 - decay_progress(step, begin, config.total_steps);
    }
  }
  throw InternalError("optim.schedule", "unknown kind " + std::to_string(static_cast<int>(config.kind)) + ".");
}

}  // namespace

ScheduleKind parse_schedule(std::string_view word) {
  if (word == "constant") return ScheduleKind::kConstant;
  if (word == "linear") return ScheduleKind::kLinear;
  if (word == "cosine") return ScheduleKind::kCosine;
  if (word == "wsd") return ScheduleKind::kWarmupStableDecay;
  throw ConfigError("optim.schedule",
                    "'" + std::string(word) + "' is not a schedule: use constant, linear, cosine or wsd.");
}

double learning_rate(const ScheduleConfig& config, int64_t step) {
  if (step < config.warmup_steps) {
    return config.peak * static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps);
  }
  if (config.kind == ScheduleKind::kConstant) return config.peak;
  return config.peak * (config.floor_ratio + (1 - config.floor_ratio) * share_of_peak(config, step));
}

}  // namespace headrace::optim
