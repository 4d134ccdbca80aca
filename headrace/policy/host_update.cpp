#include "headrace/policy/host_update.h"

#include <algorithm>
#include <span>

namespace headrace::policy {

void update_on_host(const optim::ParameterGroups& groups, const HostBlock& block, int64_t begin, int64_t end,
                    kernel::AdamWStep step, device::Pace& pace) {
  constexpr int64_t kChunk = device::Pace::kPieceBytes / kHostUpdateBytes;  // [elements]
  const double weight_decay = step.weight_decay;
  const auto part = [](float* at, int64_t offset, int64_t count) {
    return std::span<float>(at + offset, static_cast<size_t>(count));
  };
  pace.begin();
  for (const optim::ParameterGroup& group : groups.groups) {
    step.weight_decay = group.decays ? weight_decay : 0;
    const int64_t last = std::min(end, group.offset + group.numel);
    for (int64_t at = std::max(begin, group.offset); at < last; at += kChunk) {
      const int64_t count = std::min(kChunk, last - at), state = group.state_offset + (at - group.offset);
      kernel::adamw_update(part(block.master, at, count), part(block.m, state, count), part(block.v, state, count),
                           std::span<const float>(block.gradient + at, static_cast<size_t>(count)), step);
      pace.moved(count * kHostUpdateBytes);
    }
  }
}

}  // namespace headrace::policy
