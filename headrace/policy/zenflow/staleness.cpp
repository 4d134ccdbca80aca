#include "headrace/policy/zenflow/staleness.h"

#include <algorithm>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/policy/state.h"

namespace headrace::policy::zenflow {

int64_t StalenessGuard::seen(int64_t length, int64_t age, double share) {
  const int64_t oldest = age + length - 1;
  if (oldest > bound_) {
    throw InternalError("policy.zenflow", "a gradient would be seen " + std::to_string(oldest) +
                                              " steps after it was computed, the bound is " + std::to_string(bound_) +
                                              ".");
  }
  largest_ = std::max(largest_, oldest - 1);
  const auto steps = static_cast<double>(length);
  sum_ += share * steps * (static_cast<double>(age - 1) + (steps - 1) / 2);
  weight_ += share * steps;
  return oldest - 1;
}

Json StalenessGuard::to_json() const {
  return {{"bound", bound_}, {"largest", largest_}, {"sum", sum_}, {"weight", weight_}};
}

void StalenessGuard::restore(const Json& saved) {
  bound_ = std::max(bound_, count_fact(saved, "bound"));
  largest_ = count_fact(saved, "largest");
  sum_ = number_fact(saved, "sum");
  weight_ = number_fact(saved, "weight");
}

}  // namespace headrace::policy::zenflow
