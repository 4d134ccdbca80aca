#include "headrace/policy/zenflow/column_score.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace headrace::policy::zenflow {
namespace {

constexpr double kKeep = 0.9;  // of the past at each step: a memory of about ten steps

double share(double energy, const std::vector<double>& of) {
  const double all = std::accumulate(of.begin(), of.end(), 0.0);
  return all > 0 ? energy / all : 0;
}

}  // namespace

void ColumnScore::end_step() {
  const double past = kKeep * weight_, weight = past + 1;
  for (size_t i = 0; i < step_.size(); ++i) smooth_[i] = (past * smooth_[i] + step_[i]) / weight;
  weight_ = weight;
  skip_step();
}

void ColumnScore::skip_step() { std::fill(step_.begin(), step_.end(), 0.0); }

void ColumnScore::restore(std::vector<double> smoothed, double weight) {
  smooth_ = std::move(smoothed);
  weight_ = weight;
}

double ColumnScore::concentration(int64_t count) const {
  std::vector<double> sorted = smooth_;
  const auto middle = sorted.begin() + std::min(count, static_cast<int64_t>(sorted.size()));
  std::partial_sort(sorted.begin(), middle, sorted.end(), std::greater<>());
  return share(std::accumulate(sorted.begin(), middle, 0.0), smooth_);
}

double ColumnScore::share_of(std::span<const int32_t> channels) const {
  double energy = 0;
  for (const int32_t channel : channels) energy += smooth_[static_cast<size_t>(channel)];
  return share(energy, smooth_);
}

}  // namespace headrace::policy::zenflow
