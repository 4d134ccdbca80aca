#include "headrace/optim/adamw.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/kernel/squared_norm.h"
#include "headrace/optim/gpu_adamw.h"

namespace headrace::optim {
namespace {

// Elements one thread takes at a time: 16 bytes of traffic each, a few L2 caches full.
constexpr int64_t kGrain = 4 * static_cast<int64_t>(kernel::kNormChunk);

std::span<float> flat(const at::Tensor& tensor, int64_t offset, int64_t numel) {
  return {tensor.data_ptr<float>() + offset, static_cast<size_t>(numel)};
}

void require_flat(const at::Tensor& tensor, int64_t numel, const char* name) {
  if (tensor.scalar_type() == at::kFloat && tensor.is_contiguous() && tensor.numel() >= numel) return;
  throw InternalError("optim.adamw", std::string(name) + " must be contiguous fp32 of at least " +
                                         std::to_string(numel) + " elements, has " + std::to_string(tensor.numel()) +
                                         ".");
}

int64_t end_of(const ParameterGroups& groups) {
  return groups.groups.empty() ? 0 : groups.groups.back().offset + groups.groups.back().numel;
}

}  // namespace

AdamWState make_adamw_state(const ParameterGroups& groups, at::Device device) {
  return {at::zeros({groups.state_numel}, device), at::zeros({groups.state_numel}, device), 0};
}

void adamw_step(const ParameterGroups& groups, at::Tensor& weights, const at::Tensor& gradients, AdamWState& state,
                kernel::AdamWStep step) {
  require_flat(weights, end_of(groups), "weights");
  require_flat(gradients, end_of(groups), "gradients");
  require_flat(state.m, groups.state_numel, "m");
  require_flat(state.v, groups.state_numel, "v");
  if (weights.is_cuda()) return gpu_adamw_step(groups, weights, gradients, state, step);
  step.step = ++state.updates;
  const double weight_decay = step.weight_decay;
  for (const ParameterGroup& group : groups.groups) {
    step.weight_decay = group.decays ? weight_decay : 0;
    at::parallel_for(0, group.numel, kGrain, [&](int64_t begin, int64_t end) {
      const int64_t at = group.offset + begin, state_at = group.state_offset + begin, count = end - begin;
      kernel::adamw_update(flat(weights, at, count), flat(state.m, state_at, count), flat(state.v, state_at, count),
                           flat(gradients, at, count), step);
    });
  }
}

double squared_norm(const ParameterGroups& groups, const at::Tensor& gradients) {
  require_flat(gradients, end_of(groups), "gradients");
  if (gradients.is_cuda()) return gpu_squared_norm(groups, gradients);
  constexpr auto kChunk = static_cast<int64_t>(kernel::kNormChunk);
  double sum = 0;
  for (const ParameterGroup& group : groups.groups) {
    std::vector<double> parts(static_cast<size_t>((group.numel + kChunk - 1) / kChunk));
    at::parallel_for(0, static_cast<int64_t>(parts.size()), kGrain / kChunk, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t count = std::min(kChunk, group.numel - part * kChunk);
        parts[static_cast<size_t>(part)] = kernel::squared_norm(flat(gradients, group.offset + part * kChunk, count));
      }
    });
    for (double part : parts) sum += part;
  }
  return sum;
}

}  // namespace headrace::optim
