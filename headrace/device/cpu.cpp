#include "headrace/device/cpu.h"

#include <cstring>

#include "headrace/os/affinity.h"

namespace headrace::device {
namespace {

class CpuDevice : public Device {
 public:
  Kind kind() const override { return Kind::kCpu; }
  std::string describe() const override { return "cpu: everything resident, fp32"; }
  Slab allocate(Tier tier, int64_t bytes) override { return map_pages(tier, bytes); }
  void copy(Direction, std::byte* to, const std::byte* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  const Cores& cores() const override { return cores_; }

 private:
  const Cores cores_{.compute = os::allowed_cores(), .host = os::allowed_cores()};
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace headrace::device
