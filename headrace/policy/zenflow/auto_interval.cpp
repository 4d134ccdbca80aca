#include "headrace/policy/zenflow/auto_interval.h"

#include <algorithm>
#include <cmath>

namespace headrace::policy::zenflow {
namespace {

constexpr double kRoom = 0.95;  // of a shorter window's time the host may take, to go there

}  // namespace

int64_t choose_interval(double host_s, double step_s, int64_t interval, const IntervalLimits& limits) {
  const double steps = host_s / step_s;
  int64_t chosen = std::isfinite(steps) ? static_cast<int64_t>(std::ceil(std::min(steps, 1e9))) : limits.largest;
  if (chosen < interval && steps > kRoom * static_cast<double>(interval - 1)) chosen = interval;
  if (chosen < interval) chosen = std::max<int64_t>(chosen, static_cast<int64_t>(std::ceil(steps / kRoom)));
  return std::clamp(chosen, limits.smallest, limits.largest);
}

}  // namespace headrace::policy::zenflow
