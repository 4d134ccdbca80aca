// The slabs that a policy takes from its device's two tiers, each charged to its tier's budget and given back at the
// end. Built by the trainer thread; whoever gets a part uses it from wherever it says.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/memory/budget.h"

namespace headrace::policy {

// [numbers] rounded up to a cache line, where each block of a slab begins.
int64_t aligned_numel(int64_t numel);

// Hands out parts of a slab one after the other.
class Cursor {
 public:
  explicit Cursor(float* at) : at_(at) {}
  float* next(int64_t numel) { return std::exchange(at_, at_ + aligned_numel(numel)); }

 private:
  float* at_;
};

class TierMemory {
 public:
  TierMemory(std::shared_ptr<memory::Budget> device, std::shared_ptr<memory::Budget> host)
      : device_(std::move(device)), host_(std::move(host)) {}
  ~TierMemory();
  TierMemory(const TierMemory&) = delete;
  TierMemory& operator=(const TierMemory&) = delete;

  // A slab for `numel` fp32 numbers. Throws CapacityError before anything is allocated when the budget refuses.
  float* take(device::Device& device, device::Tier tier, memory::Kind kind, int64_t numel);

 private:
  struct Charge {
    std::shared_ptr<memory::Budget> budget;
    memory::Kind kind;
    int64_t bytes;
  };
  const std::shared_ptr<memory::Budget> device_, host_;
  std::vector<device::Slab> slabs_;
  std::vector<Charge> charges_;
};

}  // namespace headrace::policy
