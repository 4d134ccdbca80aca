#include "headrace/device/emulated.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"
#include "headrace/device/pace.h"
#include "headrace/os/affinity.h"

namespace headrace::device {
namespace {

struct Link {
  explicit Link(const Rate& set) : rate(set), pace(set) {}

  const Rate rate;
  Pace pace;
  std::atomic<bool> is_busy = false;
};

std::string text_of(const Rate& rate) {
  const std::string speed =
      rate.bytes_per_s == 0 ? "unpaced" : "at " + format_bytes(static_cast<int64_t>(rate.bytes_per_s)) + "/s";
  if (rate.latency_s == 0) return speed;
  return speed + " after " + format_count(static_cast<int64_t>(rate.latency_s * 1e6)) + " us";
}

Cores checked(const Cores& cores) {
  const std::vector<int> allowed = os::allowed_cores();
  if (cores.compute.empty() && cores.host.empty()) return split(allowed);
  for (const auto* list : {&cores.compute, &cores.host}) {
    if (list->empty()) {
      throw ConfigError("device.emulated", "cores are named for compute or for the host only. Name both or neither.");
    }
    for (const int core : *list) {
      if (std::ranges::find(allowed, core) != allowed.end()) continue;
      throw ConfigError("device.emulated", "core " + std::to_string(core) +
                                               " is not among those to run on. Use some of " +
                                               device::text_of(allowed) + ".");
    }
  }
  return cores;
}

class EmulatedDevice : public Device {
 public:
  explicit EmulatedDevice(const EmulatedSettings& settings)
      : cores_(checked(settings.cores)), to_device_(settings.to_device), to_host_(settings.to_host) {}

  Kind kind() const override { return Kind::kEmulated; }
  std::string describe() const override {
    return "emulated: an accelerator imitated on the CPU; compute on cores " + device::text_of(cores_.compute) +
           ", host on cores " + device::text_of(cores_.host) + "; h2d " + text_of(to_device_.rate) + ", d2h " +
           text_of(to_host_.rate);
  }
  Slab allocate(Tier tier, int64_t bytes) override { return map_pages(tier, bytes); }
  void copy(Direction direction, std::byte* to, const std::byte* from, int64_t bytes) override;
  const Cores& cores() const override { return cores_; }

 private:
  const Cores cores_;
  Link to_device_, to_host_;
};

void EmulatedDevice::copy(Direction direction, std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes <= 0) return;
  Link& link = direction == Direction::kToDevice ? to_device_ : to_host_;
  if (link.is_busy.exchange(true)) {
    throw InternalError("device.copy", "two copies at a time on " + std::string(name_of(direction)) + ".");
  }
  link.pace.begin();
  for (int64_t done = 0; done < bytes; done += Pace::kPieceBytes) {
    const int64_t piece = std::min(Pace::kPieceBytes, bytes - done);
    std::memcpy(to + done, from + done, static_cast<size_t>(piece));
    link.pace.moved(piece);
  }
  link.is_busy = false;
}

}  // namespace

std::unique_ptr<Device> make_emulated_device(const EmulatedSettings& settings) {
  return std::make_unique<EmulatedDevice>(settings);
}

}  // namespace headrace::device
