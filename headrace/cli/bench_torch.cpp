#include "headrace/cli/bench_torch.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

namespace headrace::cli {

measure::Contender torch_fused_adamw() {
  const auto step = [](const measure::AdamWArrays& arrays, int threads) {
    if (at::get_num_threads() != threads) at::set_num_threads(threads);
    const auto tensor = [](std::span<float> values) {
      return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat);
    };
    std::vector<at::Tensor> weights = {tensor(arrays.master)}, gradients = {tensor(arrays.gradient)};
    std::vector<at::Tensor> m = {tensor(arrays.m)}, v = {tensor(arrays.v)}, none;
    std::vector<at::Tensor> steps = {at::full({}, 1000.0, at::kFloat)};
    at::_fused_adamw_(weights, gradients, m, v, none, steps, 1e-6, 0.9, 0.999, 0.01, 1e-8, false, false);
  };
  return {"torch fused, fp32 throughout", 28, step};
}

}  // namespace headrace::cli
