// Kernels beside what libtorch offers for the same, at the sizes of one SmolLM2-135M layer on 860 tokens.
// Google Benchmark: --benchmark_filter=..., --benchmark_format=json.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/kernel/adamw.h"
#include "headrace/kernel/adamw_channels.h"
#include "headrace/kernel/channels.h"
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

// What one core does where memory does not count: how the master is kept by the range (0 fp32, 1 with a bf16 weight
// beside it, 2 split), then whether the gradient is bf16.
void adamw_in_cache(benchmark::State& state) {
  namespace kernel = headrace::kernel;
  constexpr size_t kCount = 8192;
  std::vector<float> master(kCount, 1.0F), m(kCount, 0.1F), v(kCount, 0.2F), wide(kCount, 0.5F);
  std::vector<kernel::Bf16> upper(kCount), narrow(kCount);
  std::vector<int16_t> lower(kCount);
  kernel::split(master, upper, lower);
  kernel::to_bf16(wide, narrow);
  kernel::Gradient gradient = std::span<const float>(wide);
  if (state.range(1) != 0) gradient = std::span<const kernel::Bf16>(narrow);
  for ([[maybe_unused]] auto _ : state) {
    if (state.range(0) == 0) kernel::adamw_update(master, m, v, gradient, {});
    if (state.range(0) == 1) kernel::adamw_update(kernel::RoundedMaster{master, upper}, m, v, gradient, {});
    if (state.range(0) == 2) kernel::adamw_update(kernel::SplitMaster{upper, lower}, m, v, gradient, {});
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kCount));
}
BENCHMARK(adamw_in_cache)->ArgsProduct({{0, 1, 2}, {0, 1}})->UseRealTime();

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

// ZenFlow's kernels on one thread, beside what only copies or adds as many bytes: a matrix [rows, width] by the range.
// The first two fit a cache of 32 MiB, as a gradient does that was just written.
struct Chosen {
  explicit Chosen(const benchmark::State& state)
      : shape{state.range(0), state.range(1), headrace::kernel::Axis::kColumns},
        matrix(static_cast<size_t>(shape.num_elements()), 0.5f),
        scores(static_cast<size_t>(shape.width)) {
    std::vector<int32_t> all(static_cast<size_t>(shape.width));
    std::iota(all.begin(), all.end(), 0);
    headrace::Rng rng(1);
    rng.shuffle(all);
    const auto middle = all.begin() + static_cast<int64_t>(all.size() / 10);
    std::sort(middle, all.end());
    important.assign(all.begin(), middle);
    deferred.assign(middle, all.end());
    important_values.resize(static_cast<size_t>(shape.rows) * important.size());
    deferred_values.resize(static_cast<size_t>(shape.rows) * deferred.size());
  }
  headrace::kernel::Lines lines() const { return {0, shape.rows}; }

  headrace::kernel::MatrixShape shape;
  std::vector<int32_t> important, deferred;
  std::vector<float> matrix, important_values, deferred_values;
  std::vector<double> scores;
};

void with_shapes(benchmark::internal::Benchmark* row) {
  row->Args({2048, 768})->Args({768, 2048})->Args({16384, 768})->UseRealTime()->Unit(benchmark::kMicrosecond);
}

void count_bytes_of(benchmark::State& state, size_t elements, int64_t bytes_an_element) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(elements) * bytes_an_element);
}

void split_columns(benchmark::State& state) {
  Chosen c(state);
  for ([[maybe_unused]] auto _ : state) {
    headrace::kernel::split_columns(c.matrix, c.shape, c.lines(), {c.important, c.important_values},
                                    {c.deferred, c.deferred_values}, c.scores);
  }
  count_bytes_of(state, c.matrix.size(), 8);
}
BENCHMARK(split_columns)->Apply(with_shapes);

void scatter_channels(benchmark::State& state) {
  Chosen c(state);
  for ([[maybe_unused]] auto _ : state) {
    headrace::kernel::scatter_channels(c.deferred_values, c.shape, c.deferred, c.lines(), c.matrix);
  }
  count_bytes_of(state, c.deferred_values.size(), 8);
}
BENCHMARK(scatter_channels)->Apply(with_shapes);

void copy_matrix(benchmark::State& state) {
  const Chosen c(state);
  std::vector<float> copy(c.matrix.size());
  for ([[maybe_unused]] auto _ : state) {
    std::memcpy(copy.data(), c.matrix.data(), copy.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  count_bytes_of(state, copy.size(), 8);
}
BENCHMARK(copy_matrix)->Apply(with_shapes);

// The deferred channels after a window of so many steps, in fp32.
template <int kSlots>
void adamw_update_channels(benchmark::State& state) {
  Chosen c(state);
  const size_t count = c.deferred_values.size();
  const std::vector<std::vector<float>> gradients(kSlots, std::vector<float>(count, 0.5f));
  std::vector<headrace::kernel::WindowSlot> slots;
  for (const auto& gradient : gradients) slots.push_back({std::span<const float>(gradient), 0.5f});
  std::vector<float> m(count), v(count);
  const headrace::kernel::ChannelAdamW adamw;
  const std::vector<int64_t> updates(c.deferred.size(), 3);
  const auto corrections = headrace::kernel::bias_corrections(adamw, updates);
  for ([[maybe_unused]] auto _ : state) {
    headrace::kernel::adamw_update_channels({c.deferred_values, m, v}, {slots, 1.0f / kSlots}, c.shape, c.lines(),
                                            corrections, adamw);
  }
  count_bytes_of(state, count, 24 + 4 * kSlots);
}
BENCHMARK(adamw_update_channels<1>)->Apply(with_shapes);
BENCHMARK(adamw_update_channels<4>)->Apply(with_shapes);

void triad_on_one_thread(benchmark::State& state) {
  const Chosen c(state);
  const std::vector<float> other(c.matrix.size(), 2.0f);
  std::vector<float> sum(c.matrix.size());
  for ([[maybe_unused]] auto _ : state) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = c.matrix[i] + 0.5f * other[i];
    benchmark::ClobberMemory();
  }
  count_bytes_of(state, sum.size(), 12);
}
BENCHMARK(triad_on_one_thread)->Apply(with_shapes);

}  // namespace

BENCHMARK_MAIN();
