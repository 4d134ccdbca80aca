// Kernels beside what libtorch offers for the same, at the sizes of one SmolLM2-135M layer on 860 tokens.
// Google Benchmark: --benchmark_filter=..., --benchmark_format=json.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "headrace/model/linear_cross_entropy.h"
#include "headrace/optim/adamw.h"
#include "headrace/tensor/fused_activation.h"
#include "headrace/tensor/fused_attention.h"
#include "headrace/tensor/fused_norm.h"
#include "headrace/tensor/torch.h"

namespace {

namespace tensor = headrace::tensor;

constexpr int64_t kTokens = 860, kChannels = 576, kHidden = 1536, kHeads = 9, kKvHeads = 3, kHeadDim = 64;

void rms_norm_ours(benchmark::State& state) {
  const at::Tensor x = at::randn({kTokens, kChannels}), weight = at::randn({kChannels}), grad = at::randn_like(x);
  const at::Tensor grad_weight = at::zeros({kChannels});
  at::Tensor grad_x = at::zeros_like(x);
  for ([[maybe_unused]] auto _ : state) {
    const tensor::RmsNorm norm = tensor::rms_norm(x, weight, 1e-5);
    tensor::rms_norm_backward(grad, x, norm.inverse_N, {weight, grad_weight}, grad_x);
  }
}
BENCHMARK(rms_norm_ours)->UseRealTime();

void rms_norm_libtorch(benchmark::State& state) {
  const at::Tensor x = at::randn({kTokens, kChannels}).requires_grad_(), grad = at::randn({kTokens, kChannels});
  const at::Tensor weight = at::randn({kChannels}).requires_grad_();
  for ([[maybe_unused]] auto _ : state) at::rms_norm(x, {kChannels}, weight, 1e-5).backward(grad);
}
BENCHMARK(rms_norm_libtorch)->UseRealTime();

void swiglu_ours(benchmark::State& state) {
  const at::Tensor start = at::randn({kTokens, 2 * kHidden}), grad = at::randn({kTokens, kHidden});
  at::Tensor gate_up = start.clone(), in_place = grad.clone();
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(tensor::swiglu(gate_up));
    tensor::swiglu_backward_(gate_up, in_place);
  }
}
BENCHMARK(swiglu_ours)->UseRealTime();

void swiglu_libtorch(benchmark::State& state) {
  const at::Tensor gate = at::randn({kTokens, kHidden}).requires_grad_();
  const at::Tensor up = at::randn({kTokens, kHidden}).requires_grad_(), grad = at::randn({kTokens, kHidden});
  for ([[maybe_unused]] auto _ : state) (at::silu(gate) * up).backward(grad);
}
BENCHMARK(swiglu_libtorch)->UseRealTime();

// Documents of equal length in one batch of about kTokens tokens.
std::vector<int64_t> equal_documents(int64_t length) {
  std::vector<int64_t> starts = {0};
  while (starts.back() + length <= kTokens) starts.push_back(starts.back() + length);
  return starts;
}

void attention_ours(benchmark::State& state) {
  const std::vector<int64_t> starts = equal_documents(state.range(0));
  const tensor::AttentionShape shape{kHeads, kKvHeads, kHeadDim, 1 / std::sqrt(64.0), 0};
  const at::Tensor qkv = at::randn({starts.back(), (kHeads + 2 * kKvHeads) * kHeadDim});
  const at::Tensor grad = at::randn({starts.back(), kHeads * kHeadDim});
  for ([[maybe_unused]] auto _ : state) {
    const tensor::Attention result = tensor::attention(qkv, starts, shape);
    benchmark::DoNotOptimize(tensor::attention_backward(grad, qkv, result, starts, shape));
  }
}
BENCHMARK(attention_ours)->Arg(20)->Arg(60)->Arg(215)->Arg(860)->UseRealTime();

// One batch of padded documents through libtorch's flash attention, keys and values repeated for their groups.
void attention_libtorch(benchmark::State& state) {
  const int64_t length = state.range(0), documents = kTokens / length;
  const auto heads = [&](int64_t count) { return at::randn({documents, count, length, kHeadDim}).requires_grad_(); };
  const at::Tensor q = heads(kHeads), k = heads(kKvHeads), v = heads(kKvHeads), grad = at::randn(q.sizes());
  for ([[maybe_unused]] auto _ : state) {
    at::scaled_dot_product_attention(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1), {}, 0.0, true)
        .backward(grad);
  }
}
BENCHMARK(attention_libtorch)->Arg(20)->Arg(60)->Arg(215)->Arg(860)->UseRealTime();

constexpr int64_t kVocabulary = 49152;

void loss_ours(benchmark::State& state) {
  const at::Tensor x = at::randn({kTokens, kChannels}), weight = at::randn({kVocabulary, kChannels});
  const at::Tensor targets = at::randint(0, kVocabulary, {kTokens}, at::kLong), grad = at::zeros_like(weight);
  for ([[maybe_unused]] auto _ : state) {
    headrace::model::linear_cross_entropy(x, weight, targets, 1, grad, state.range(0) << 20);
  }
}
BENCHMARK(loss_ours)->Arg(16)->Arg(32)->Arg(64)->Arg(256)->UseRealTime()->Unit(benchmark::kMillisecond);

void loss_libtorch(benchmark::State& state) {
  const at::Tensor x = at::randn({kTokens, kChannels}).requires_grad_();
  const at::Tensor weight = at::randn({kVocabulary, kChannels}).requires_grad_();
  const at::Tensor targets = at::randint(0, kVocabulary, {kTokens}, at::kLong);
  for ([[maybe_unused]] auto _ : state) at::cross_entropy_loss(at::linear(x, weight), targets).backward();
}
BENCHMARK(loss_libtorch)->UseRealTime()->Unit(benchmark::kMillisecond);

constexpr int64_t kParameters = int64_t{32} << 20;

void count_bytes(benchmark::State& state, int64_t bytes_an_element) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * kParameters * bytes_an_element);
}

void adamw_ours(benchmark::State& state) {
  at::Tensor weights = at::randn({kParameters});
  const at::Tensor gradients = at::randn({kParameters});
  const auto groups = headrace::optim::group_parameters(std::vector<headrace::optim::ParameterRange>{
      {.offset = 0, .numel = kParameters, .decays = true, .is_frozen = false}});
  headrace::optim::AdamWState adamw = headrace::optim::make_adamw_state(groups);
  for ([[maybe_unused]] auto _ : state) headrace::optim::adamw_step(groups, weights, gradients, adamw, {});
  count_bytes(state, 28);
}
BENCHMARK(adamw_ours)->UseRealTime()->Unit(benchmark::kMillisecond);

void adamw_libtorch_fused(benchmark::State& state) {
  std::vector<at::Tensor> weights = {at::randn({kParameters})}, gradients = {at::randn({kParameters})};
  std::vector<at::Tensor> m = {at::zeros({kParameters})}, v = {at::zeros({kParameters})}, none;
  std::vector<at::Tensor> steps = {at::ones({})};
  for ([[maybe_unused]] auto _ : state) {
    at::_fused_adamw_(weights, gradients, m, v, none, steps, 1e-3, 0.9, 0.999, 0.0, 1e-8, false, false);
  }
  count_bytes(state, 28);
}
BENCHMARK(adamw_libtorch_fused)->UseRealTime()->Unit(benchmark::kMillisecond);

// The roof of what streams through memory: a = b + s * c by two threads.
void triad(benchmark::State& state) {
  const at::Tensor b = at::randn({kParameters}), c = at::randn({kParameters}), a = at::empty({kParameters});
  float* to = a.data_ptr<float>();
  const float *left = b.const_data_ptr<float>(), *right = c.const_data_ptr<float>();
  for ([[maybe_unused]] auto _ : state) {
    at::parallel_for(0, kParameters, 1 << 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = left[i] + 0.5f * right[i];
    });
    benchmark::ClobberMemory();
  }
  count_bytes(state, 12);
}
BENCHMARK(triad)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
