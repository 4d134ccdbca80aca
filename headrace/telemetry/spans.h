// Where the time of the steps went: totals per phase, from which step_time_s and stall_share follow.
// One owner: the thread that runs the steps. Blocking on nothing, no allocation.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace::telemetry {

enum class Phase { kDataWait, kForward, kBackward, kUpdate, kStall, kEval, kSave };
constexpr size_t kNumPhases = 7;

// "data_wait", "forward", ...: the keys of metrics.jsonl.
std::string_view name_of(Phase phase);

class PhaseTimes {
 public:
  using Clock = double (*)();  // [s], does not go back

  explicit PhaseTimes(Clock clock = steady_seconds) : clock_(clock) {}

  // Adds the time of its life to a phase. Spans of one PhaseTimes must not overlap.
  class Span {
   public:
    Span(PhaseTimes& times, Phase phase) : times_(times), phase_(phase), begin_s_(times.clock_()) {}
    ~Span() { times_.add(phase_, times_.clock_() - begin_s_); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    PhaseTimes& times_;
    Phase phase_;
    double begin_s_;
  };

  void add(Phase phase, double seconds) { totals_s_[static_cast<size_t>(phase)] += seconds; }
  // The wall time between the two is one step: waiting for data inside, evaluation and saving outside.
  void begin_step() { step_begin_s_ = clock_(); }
  void end_step();

  double total_s(Phase phase) const { return totals_s_[static_cast<size_t>(phase)]; }
  int64_t num_steps() const { return num_steps_; }
  double last_step_s() const { return last_step_s_; }
  // Mean over the steps; 0 before the first.
  double step_time_s() const { return num_steps_ == 0 ? 0 : steps_s_ / static_cast<double>(num_steps_); }
  // Share of the steps' time in which the compute lane waited, for data or for another lane [0..1].
  double stall_share() const {
    return steps_s_ > 0 ? (total_s(Phase::kDataWait) + total_s(Phase::kStall)) / steps_s_ : 0;
  }

  static double steady_seconds();

 private:
  Clock clock_;
  std::array<double, kNumPhases> totals_s_{};
  double step_begin_s_ = 0, steps_s_ = 0, last_step_s_ = 0;
  int64_t num_steps_ = 0;
};

}  // namespace headrace::telemetry
