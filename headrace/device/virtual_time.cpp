#include "headrace/device/virtual_time.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "headrace/base/errors.h"

namespace headrace::device {
namespace {

double checked(double value, const char* name) {
  if (std::isfinite(value) && value >= 0) return value;
  throw ConfigError("device.pace", std::string(name) + " is " + std::to_string(value) + ", must be at least 0.");
}

}  // namespace

VirtualTime::VirtualTime(const Rate& rate)
    : bytes_per_s_(checked(rate.bytes_per_s, "bytes_per_s")),
      latency_ns_(static_cast<int64_t>(std::ceil(checked(rate.latency_s, "latency_s") * 1e9))) {}

int64_t VirtualTime::begin(int64_t now_ns) {
  bytes_ = 0;
  first_ns_ = now_ns - lateness_ns_ + latency_ns_;
  return due_ns_ = first_ns_;
}

int64_t VirtualTime::moved(int64_t bytes, int64_t now_ns) {
  bytes_ += bytes;
  // From the pass's total, so that rounding does not add up. Without a rate the bytes take what they took.
  due_ns_ = bytes_per_s_ == 0
                ? now_ns - lateness_ns_
                : first_ns_ + static_cast<int64_t>(std::ceil(1e9 * static_cast<double>(bytes_) / bytes_per_s_));
  return due_ns_;
}

void VirtualTime::waited(int64_t now_ns) { lateness_ns_ = std::clamp(now_ns - due_ns_, int64_t{0}, kMaxLateness_ns); }

}  // namespace headrace::device
