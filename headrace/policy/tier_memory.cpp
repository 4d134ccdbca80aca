#include "headrace/policy/tier_memory.h"

namespace headrace::policy {
namespace {

constexpr int64_t kFloat = 4;     // [bytes]
constexpr int64_t kAligned = 16;  // [numbers] a cache line

}  // namespace

int64_t aligned_numel(int64_t numel) { return (numel + kAligned - 1) / kAligned * kAligned; }

TierMemory::~TierMemory() {
  for (const Charge& charge : charges_) charge.budget->give(charge.kind, charge.bytes);
}

float* TierMemory::take(device::Device& device, device::Tier tier, memory::Kind kind, int64_t numel) {
  const auto& budget = tier == device::Tier::kDevice ? device_ : host_;
  budget->take(kind, numel * kFloat);
  charges_.push_back({budget, kind, numel * kFloat});
  slabs_.push_back(device.allocate(tier, numel * kFloat));
  budget->count_system_allocation();
  return reinterpret_cast<float*>(slabs_.back().data());
}

}  // namespace headrace::policy
