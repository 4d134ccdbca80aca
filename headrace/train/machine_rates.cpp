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
#include "headrace/policy/device_tensor.h"
#include "headrace/policy/host_update.h"

namespace headrace::train {
namespace {

constexpr int kRounds = 5;
constexpr int64_t kSide = 768;                   // of square matrices: as a small model's layers have
constexpr int64_t kGpuSide = 4096;               // as those have that need a GPU
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

double matrix_rate(device::Device& device) {
  const at::Device where = policy::torch_device(device);
  const int64_t side = where.is_cpu() ? kSide : kGpuSide;
  const at::Tensor a = at::ones({side, side}, where), b = at::ones({side, side}, where);
  at::Tensor product = at::mm(a, b);
  device.finish_compute();
  const double seconds = fastest_s([&] {
    at::mm_out(product, a, b);
    device.finish_compute();
  });
  return 2.0 * static_cast<double>(side * side * side) / seconds;
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

MachineRates measure_rates(device::Device& device) { return {matrix_rate(device), host_rate(device.cores())}; }

}  // namespace headrace::train
