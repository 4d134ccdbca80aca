#include "headrace/train/machine_rates.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "headrace/kernel/adamw.h"
#include "headrace/os/affinity.h"
#include "headrace/policy/host_update.h"

namespace headrace::train {
namespace {

constexpr int kRounds = 5;
constexpr int64_t kSide = 768;                   // of square matrices: as a small model's layers have
constexpr size_t kParameters = size_t{4} << 20;  // beyond every cache

// [s] of the fastest of some rounds: what the machine can do when nobody disturbs it.
double fastest_s(const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

double matrix_rate() {
  const at::Tensor a = at::ones({kSide, kSide}), b = at::ones({kSide, kSide});
  at::Tensor product = at::mm(a, b);
  const double seconds = fastest_s([&] { at::mm_out(product, a, b); });
  return 2.0 * static_cast<double>(kSide * kSide * kSide) / seconds;
}

double host_rate(const device::Cores& cores) {
  double seconds = 0;
  std::thread([&] {
    os::pin_this_thread_to_one(cores.host, 0);
    std::vector<float> master(kParameters, 1.0F), m(kParameters), v(kParameters), gradient(kParameters, 1.0F);
    seconds = fastest_s([&] { kernel::adamw_update(master, m, v, std::span<const float>(gradient), {}); });
  }).join();
  return static_cast<double>(kParameters) * policy::kHostUpdateBytes / seconds;
}

}  // namespace

MachineRates measure_rates(const device::Cores& cores) { return {matrix_rate(), host_rate(cores)}; }

}  // namespace headrace::train
