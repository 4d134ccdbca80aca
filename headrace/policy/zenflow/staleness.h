// How old gradients are when a forward first sees them, and that none is older than promised. Source of the bound:
// windows of at most S steps, each merged at the end of the next. One owner.
#pragma once

#include <cstdint>

#include "headrace/base/json.h"

namespace headrace::policy::zenflow {

class StalenessGuard {
 public:
  // `bound`: most steps from a gradient's to the first forward that sees it, 2 S. >= 1.
  explicit StalenessGuard(int64_t bound) : bound_(bound) {}

  // A window of `length` steps, the last of them `age` >= 1 steps before the forward that sees it first; `share` of the
  // parameters are concerned. Returns how stale its oldest gradient is [steps]. Throws InternalError when that is
  // beyond the bound.
  int64_t seen(int64_t length, int64_t age, double share);

  // [steps] between a gradient and the first forward that sees it: 0 when that is the next one. Of deferred columns.
  int64_t largest() const { return largest_; }
  double mean() const { return weight_ > 0 ? sum_ / weight_ : 0; }

  int64_t bound() const { return bound_; }
  Json to_json() const;
  // Goes on from to_json() of a guard whose bound may have been larger: then it is this one's too, for what is under
  // way. Throws DataError.
  void restore(const Json& saved);

 private:
  int64_t bound_;
  int64_t largest_ = 0;
  double sum_ = 0, weight_ = 0;
};

}  // namespace headrace::policy::zenflow
