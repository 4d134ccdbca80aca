#include "headrace/memory/budget.h"

#include <algorithm>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"

namespace headrace::memory {

Budget::Budget(std::string tier, int64_t limit, std::string knob)
    : tier_(std::move(tier)), knob_(std::move(knob)), limit_(limit) {}

void Budget::take(Kind kind, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes < 0) throw InternalError("memory.budget", std::to_string(bytes) + " bytes asked for.");
  if (limit_ > 0 && bytes > limit_ - in_use_) {
    throw CapacityError("memory.budget", format_bytes(bytes) + " more of " + std::string(name_of(kind)) + " on the " +
                                             tier_ + " need " + format_bytes(in_use_ + bytes) + " in all (" +
                                             by_kind() + "), but " + knob_ + " is " + format_bytes(limit_) +
                                             ". Raise " + knob_ +
                                             ", lower --batch or --max-length, or add --recompute.");
  }
  const auto at = static_cast<size_t>(kind);
  in_use_ += bytes;
  of_kind_[at] += bytes;
  peak_ = std::max(peak_, in_use_);
  peak_of_kind_[at] = std::max(peak_of_kind_[at], of_kind_[at]);
}

void Budget::give(Kind kind, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<size_t>(kind);
  if (bytes < 0 || bytes > of_kind_[at]) {
    throw InternalError("memory.budget", std::to_string(bytes) + " bytes of " + std::string(name_of(kind)) +
                                             " given back, " + std::to_string(of_kind_[at]) + " were taken.");
  }
  in_use_ -= bytes;
  of_kind_[at] -= bytes;
}

void Budget::count_system_allocation() {
  const std::lock_guard lock(mutex_);
  ++system_allocations_;
}

int64_t Budget::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

int64_t Budget::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

int64_t Budget::peak(Kind kind) const {
  const std::lock_guard lock(mutex_);
  return peak_of_kind_[static_cast<size_t>(kind)];
}

int64_t Budget::system_allocations() const {
  const std::lock_guard lock(mutex_);
  return system_allocations_;
}

void Budget::reset_peaks() {
  const std::lock_guard lock(mutex_);
  peak_ = in_use_;
  peak_of_kind_ = of_kind_;
}

Json Budget::to_json() const {
  const std::lock_guard lock(mutex_);
  Json kinds = Json::object();
  for (size_t i = 0; i < kNumKinds; ++i) {
    if (peak_of_kind_[i] > 0) kinds[std::string(name_of(static_cast<Kind>(i)))] = peak_of_kind_[i];
  }
  return {{"limit", limit_}, {"peak", peak_}, {"by_kind", kinds}};
}

// With the lock held: "weight 513 MiB + gradient 20 MiB in use".
std::string Budget::by_kind() const {
  std::string text;
  for (size_t i = 0; i < kNumKinds; ++i) {
    if (of_kind_[i] == 0) continue;
    if (!text.empty()) text += " + ";
    text += name_of(static_cast<Kind>(i));
    text += " " + format_bytes(of_kind_[i]);
  }
  return text.empty() ? "nothing in use" : text + " in use";
}

}  // namespace headrace::memory
