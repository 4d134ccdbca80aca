#include "headrace/policy/zenflow/selection.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headrace::policy::zenflow {
namespace {

// Positions of the list, best first.
std::vector<int32_t> ranked(std::span<const double> scores, std::span<const int32_t> channels) {
  std::vector<int32_t> positions(channels.size());
  std::iota(positions.begin(), positions.end(), 0);
  const auto channel = [&](int32_t position) { return channels[static_cast<size_t>(position)]; };
  std::sort(positions.begin(), positions.end(), [&](int32_t a, int32_t b) {
    const double of_a = scores[static_cast<size_t>(channel(a))], of_b = scores[static_cast<size_t>(channel(b))];
    return of_a != of_b ? of_a > of_b : channel(a) < channel(b);
  });
  return positions;
}

}  // namespace

int64_t num_important(double topk_ratio, int64_t num_channels) {
  const int64_t rounded = std::llround(topk_ratio * static_cast<double>(num_channels));
  return std::min(num_channels, std::max<int64_t>(1, rounded));
}

std::vector<Swap> reselect(std::span<const double> scores, std::span<const int32_t> important,
                           std::span<const int32_t> deferred, double margin) {
  const std::vector<int32_t> worst = ranked(scores, important), best = ranked(scores, deferred);
  std::vector<Swap> swaps;
  for (size_t i = 0; i < std::min(worst.size(), best.size()); ++i) {
    const int32_t leaves = worst[worst.size() - 1 - i], comes = best[i];
    const double of_leaving = scores[static_cast<size_t>(important[static_cast<size_t>(leaves)])];
    const double of_coming = scores[static_cast<size_t>(deferred[static_cast<size_t>(comes)])];
    if (!(of_coming > margin * of_leaving)) break;
    swaps.push_back({leaves, comes});
  }
  return swaps;
}

}  // namespace headrace::policy::zenflow
