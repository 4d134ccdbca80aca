// What ZenFlow's kernels cost on a GPU: bytes that each must move over the time it takes, beside a copy within the
// device's memory. A matrix of Llama-2-7B in fp32, a tenth of its columns important. Prints JSON.
#include <cuda_runtime_api.h>

#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu/row.h"
#include "headrace/base/json.h"
#include "headrace/device/cuda/check.h"
#include "headrace/kernel/cuda/adamw.h"
#include "headrace/kernel/cuda/adamw_channels.h"
#include "headrace/kernel/cuda/channels.h"

namespace headrace {
namespace {

using device::cuda::check;
using kernel::Lines;

constexpr int kRepeats = 7, kLaunches = 10;  // a repeat is that many launches queued one after another
constexpr kernel::MatrixShape kShape{.rows = 11008, .width = 4096};
constexpr int64_t kImportant = kShape.width / 10, kDeferred = kShape.width - kImportant;
constexpr int64_t kFloat = 4;  // [bytes]

// Zeros in the device's memory.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    check(cudaMalloc(reinterpret_cast<void**>(&data_), bytes), "allocating " + std::to_string(bytes) + " bytes");
    check(cudaMemset(data_, 0, bytes), "clearing memory");
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(std::ssize(values)) {
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "copying a list");
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

// [s] of one launch, by the device's clock.
double seconds_of(const std::function<void()>& launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "making an event");
  check(cudaEventCreate(&end), "making an event");
  check(cudaEventRecord(begin, nullptr), "recording an event");
  for (int i = 0; i < kLaunches; ++i) launch();
  check(cudaEventRecord(end, nullptr), "recording an event");
  check(cudaEventSynchronize(end), "waiting for the launches");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "reading the clock");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds * 1e-3 / kLaunches;
}

Json rate_row(const std::string& what, int64_t bytes, const std::function<void()>& launch) {
  seconds_of(launch);  // warms up
  std::vector<double> rates;
  for (int repeat = 0; repeat < kRepeats; ++repeat)
    rates.push_back(static_cast<double>(bytes) / seconds_of(launch) / 1e9);
  return row(what, "GB/s", std::move(rates));
}

// Every tenth column is important.
struct Columns {
  Columns() {
    for (int32_t column = 0; column < kShape.width; ++column) {
      const bool is_important = column % 10 == 5 && std::ssize(important) < kImportant;
      (is_important ? important : deferred).push_back(column);
    }
  }
  std::vector<int32_t> important, deferred;
};

Json measure() {
  const int64_t numel = kShape.num_elements(), of_important = kShape.rows * kImportant,
                of_deferred = kShape.rows * kDeferred;
  const Columns columns;
  const Lines all{0, kShape.rows};
  const Buffer<float> weights(numel), gradient(numel), m(numel), v(numel), important(of_important),
      deferred(of_deferred);
  const Buffer<int32_t> important_list(columns.important), deferred_list(columns.deferred);
  const Buffer<int32_t> places(kernel::cuda::column_places(columns.important, columns.deferred, kShape));
  const Buffer<double> scores(kShape.num_channels()), workspace(kernel::cuda::score_workspace(kShape, all));
  const Buffer<float> ones(std::vector<float>(static_cast<size_t>(kImportant), 1.0F));
  const kernel::cuda::ChannelList chosen{important_list.data(), kImportant}, others{deferred_list.data(), kDeferred};
  const kernel::cuda::ScoreBuffers score_buffers{scores.data(), workspace.data()};
  const kernel::cuda::ColumnSides sides{places.data(), important.data(), kImportant, deferred.data(), kDeferred};
  const kernel::cuda::DecayRange decays{numel, true};
  const kernel::AdamWStep step{.weight_decay = 0.1, .step = 1};
  const kernel::cuda::DeviceSlot of_important_step{{important.data()}}, of_deferred_step{{deferred.data()}};
  const kernel::cuda::DeviceStep selected{
      {std::span(&of_important_step, 1)}, {ones.data(), ones.data(), kImportant}, {}};
  Json rows = Json::array();
  const auto add = [&](const std::string& what, int64_t bytes, const std::function<void()>& launch) {
    rows.push_back(rate_row(what, bytes, launch));
  };
  add("copy within the device's memory", 2 * numel * kFloat, [&] {
    check(cudaMemcpyAsync(m.data(), gradient.data(), static_cast<size_t>(numel * kFloat), cudaMemcpyDeviceToDevice),
          "copying within the device");
  });
  add("adamw of a whole block", 7 * numel * kFloat, [&] {
    kernel::cuda::adamw_update({weights.data(), m.data(), v.data(), gradient.data(), numel}, std::span(&decays, 1),
                               step, nullptr);
  });
  add("zenflow: column scores", numel * kFloat,
      [&] { kernel::cuda::add_channel_scores(gradient.data(), kShape, all, score_buffers, nullptr); });
  add("zenflow: split of a gradient with scores", 2 * numel * kFloat,
      [&] { kernel::cuda::split_columns(gradient.data(), kShape, all, sides, score_buffers, nullptr); });
  add("zenflow: adamw of important columns in place", 7 * of_important * kFloat, [&] {
    kernel::cuda::adamw_update_selected({weights.data(), m.data(), v.data()}, important_list.data(), kShape, all,
                                        selected, nullptr);
  });
  add("zenflow: merge of deferred columns", 2 * of_deferred * kFloat,
      [&] { kernel::cuda::scatter_channels(deferred.data(), kShape, others, all, weights.data(), nullptr); });
  add("zenflow: gather of important columns", 2 * of_important * kFloat,
      [&] { kernel::cuda::gather_channels(weights.data(), kShape, chosen, all, important.data(), nullptr); });
  add("zenflow: sum of a window's gradient", 3 * of_deferred * kFloat,
      [&] { kernel::cuda::accumulate_gradient(m.data(), of_deferred, of_deferred_step, false, nullptr); });
  check(cudaDeviceSynchronize(), "the kernels");
  return rows;
}

}  // namespace
}  // namespace headrace

int main() {
  try {
    const headrace::Json rows = headrace::measure();
    std::cout << headrace::Json{{"device", "cuda"}, {"rows", rows}}.dump(2) << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
