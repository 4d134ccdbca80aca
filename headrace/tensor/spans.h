// Tensors as spans for the kernels, and the ways their work is shared among torch's threads. Rows, channels and tasks
// are split at boundaries that change no bit of any kernel's result.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <atomic>
#include <span>

#include "headrace/base/errors.h"
#include "headrace/kernel/norm.h"

namespace headrace::tensor {

// Whether our kernels compute on a tensor of this device and type: fp32 on the CPU. Others are libtorch's (aten_ops.h).
inline bool is_ours(const at::Tensor& t) { return t.scalar_type() == at::kFloat && t.is_cpu(); }

// Views of a contiguous fp32 CPU tensor; throw InternalError for any other. Valid while the tensor's storage lives.
inline void expect_plain(const at::Tensor& t) {
  if (t.is_contiguous() && is_ours(t)) return;
  throw InternalError("tensor.spans", "a kernel was given a tensor that is not contiguous fp32 on the CPU.");
}
inline std::span<float> floats(const at::Tensor& t) {
  expect_plain(t);
  return {t.data_ptr<float>(), static_cast<size_t>(t.numel())};
}
inline std::span<const float> const_floats(const at::Tensor& t) {
  expect_plain(t);
  return {t.const_data_ptr<float>(), static_cast<size_t>(t.numel())};
}

// Calls body(begin, end) for ranges that cover [0, count), each at least `grain` long.
template <class Body>
void over_range(size_t count, size_t grain, const Body& body) {
  at::parallel_for(0, static_cast<int64_t>(count), static_cast<int64_t>(grain),
                   [&](int64_t begin, int64_t end) { body(static_cast<size_t>(begin), static_cast<size_t>(end)); });
}

// Shares out C channels in multiples of a cache line.
template <class Body>
void over_channels(size_t total, const Body& body) {
  constexpr size_t kLine = 64;  // [floats] at least the widest vector, so that no vector is split
  over_range((total + kLine - 1) / kLine, 1, [&](size_t begin, size_t end) {
    body(kernel::Channels{begin * kLine, std::min(end * kLine, total), total});
  });
}

// Calls body(task, worker) once for each task; a free thread takes the next. `worker` < at::get_num_threads().
template <class Body>
void over_tasks(size_t count, const Body& body) {
  std::atomic<size_t> next = 0;
  const size_t workers = std::min(count, static_cast<size_t>(at::get_num_threads()));
  over_range(workers, 1, [&](size_t begin, size_t end) {
    for (size_t worker = begin; worker < end; ++worker) {
      for (size_t task = next++; task < count; task = next++) body(task, worker);
    }
  });
}

}  // namespace headrace::tensor
