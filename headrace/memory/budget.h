// A tier's budget: every byte taken has a kind, the limit is hard, and high-water marks stay for the report.
// Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "headrace/base/json.h"
#include "headrace/memory/kind.h"

namespace headrace::memory {

class Budget {
 public:
  // `tier` and `knob` are for the refusal: "device", "--device-budget". limit [bytes]; 0: no limit.
  Budget(std::string tier, int64_t limit, std::string knob);

  // Throws CapacityError naming tier, kind, need, have, what is in use by kind, and the knob. Nothing is taken then.
  void take(Kind kind, int64_t bytes);
  // Throws InternalError when more is given back than was taken.
  void give(Kind kind, int64_t bytes);

  // How often memory was asked from the system for this tier: stands still inside a step loop after its first step.
  void count_system_allocation();

  int64_t limit() const { return limit_; }
  int64_t in_use() const;
  int64_t peak() const;           // of all kinds together
  int64_t peak(Kind kind) const;  // of one
  int64_t system_allocations() const;
  // Peaks and what is in use now become equal: for a measurement that starts here.
  void reset_peaks();
  // {"limit": ..., "peak": ..., "by_kind": {"weight": ..., ...}} [bytes], kinds never used left out.
  Json to_json() const;

 private:
  std::string by_kind() const;

  const std::string tier_, knob_;
  const int64_t limit_;
  mutable std::mutex mutex_;
  int64_t in_use_ = 0, peak_ = 0, system_allocations_ = 0;
  std::array<int64_t, kNumKinds> of_kind_{}, peak_of_kind_{};
};

}  // namespace headrace::memory
