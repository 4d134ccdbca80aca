// How much each column's gradient matters: the squared norm at each step, smoothed over steps. Paper: arXiv 2505.12242,
// section 3.2; ours is smoothed, so that one odd batch does not move columns. Plain data; one owner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace::policy::zenflow {

// Of one matrix.
class ColumnScore {
 public:
  explicit ColumnScore(int64_t num_channels) : step_(static_cast<size_t>(num_channels)), smooth_(step_.size()) {}

  // Where this step's squared norms are summed; zeros when it begins.
  std::span<double> step() { return step_; }
  std::span<const double> step() const { return step_; }
  // Takes this step's norms into the mean and begins the next. The mean is exponential, corrected for its start:
  // after n steps as if it had always been so.
  void end_step();
  // Forgets this step's norms.
  void skip_step();
  // By channel; zeros before the first step.
  std::span<const double> smoothed() const { return smooth_; }

  // How much of the past smoothed() stands for: [steps], faded.
  double weight() const { return weight_; }
  // Goes on from what smoothed() and weight() gave.
  void restore(std::vector<double> smoothed, double weight);

  // Share of the energy (sum of squared norms) in the channels that hold the most of it [0..1]; 0 without energy.
  // `count` of them, at most all.
  double concentration(int64_t count) const;
  // Share of the energy in these channels; likewise.
  double share_of(std::span<const int32_t> channels) const;

 private:
  std::vector<double> step_, smooth_;  // by channel
  double weight_ = 0;                  // of the past in smooth_
};

}  // namespace headrace::policy::zenflow
