// Which columns are important: the top share of each matrix by score. Paper: arXiv 2505.12242, section 3.2; ours keeps
// a column on its side unless another beats it clearly, so that columns do not flutter. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace::policy::zenflow {

// A column that leaves the device and the one that takes its place, by their positions in the two lists.
struct Swap {
  int32_t important = 0;
  int32_t deferred = 0;
  bool operator==(const Swap&) const = default;
};

// Of `num_channels` columns how many are important: the share, rounded to the nearest, at least one, at most all.
// 0 < topk_ratio <= 1.
int64_t num_important(double topk_ratio, int64_t num_channels);

// The best deferred column takes the place of the worst important one while its score is more than `margin` times the
// other's; equal scores are ordered by channel, the smaller one counting more. `important` and `deferred` are channels
// by position, `scores` by channel. Swaps concern each position at most once.
std::vector<Swap> reselect(std::span<const double> scores, std::span<const int32_t> important,
                           std::span<const int32_t> deferred, double margin);

}  // namespace headrace::policy::zenflow
