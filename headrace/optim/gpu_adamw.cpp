#include "headrace/optim/gpu_adamw.h"

#include "headrace/kernel/cuda/adamw.h"
#include "headrace/tensor/torch.h"

namespace headrace::optim {
namespace {

constexpr int64_t kRow = 4096;  // [elements] whose squares are summed in fp32

// Adds to `sum`, fp64 of one element.
void add_squares(const at::Tensor& values, at::Tensor& sum) {
  const int64_t whole = values.numel() / kRow * kRow;
  if (whole > 0) {
    sum.add_(at::linalg_vector_norm(values.narrow(0, 0, whole).view({-1, kRow}), 2, 1).to(at::kDouble).square().sum());
  }
  if (whole == values.numel()) return;
  sum.add_(at::linalg_vector_norm(values.narrow(0, whole, values.numel() - whole)).to(at::kDouble).square());
}

}  // namespace

void gpu_adamw_step(const ParameterGroups& groups, const at::Tensor& weights, const at::Tensor& gradients,
                    AdamWState& state, kernel::AdamWStep step) {
  step.step = ++state.updates;
  for (const ParameterGroup& group : groups.groups) {
    const kernel::cuda::DecayRange all{group.numel, group.decays};
    kernel::cuda::adamw_update({.master = weights.data_ptr<float>() + group.offset,
                                .m = state.m.data_ptr<float>() + group.state_offset,
                                .v = state.v.data_ptr<float>() + group.state_offset,
                                .gradient = gradients.const_data_ptr<float>() + group.offset,
                                .count = group.numel},
                               {&all, 1}, step, nullptr);
  }
}

double gpu_squared_norm(const ParameterGroups& groups, const at::Tensor& gradients) {
  at::Tensor sum = at::zeros({}, gradients.options().dtype(at::kDouble));
  for (const ParameterGroup& group : groups.groups) add_squares(gradients.narrow(0, group.offset, group.numel), sum);
  return sum.item<double>();
}

}  // namespace headrace::optim
