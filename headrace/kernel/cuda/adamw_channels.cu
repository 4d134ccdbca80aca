// Four elements a thread where addresses allow 16-byte accesses, else one; the roof is memory bandwidth (24 bytes an
// element and its gradients).
#include <algorithm>
#include <string>

#include "headrace/kernel/adamw_constants.h"
#include "headrace/kernel/channel_checks.h"
#include "headrace/kernel/cuda/adamw_channels.h"
#include "headrace/kernel/cuda/adamw_element.h"
#include "headrace/kernel/cuda/launch.h"

namespace headrace::kernel::cuda {
namespace {

template <int kCount>
__device__ Pack<float, kCount> load_scaled(const DeviceSlot& slot, int64_t i) {
  Pack<float, kCount> values;
  if (slot.gradient.fp32 != nullptr) {
    values = load_pack<kCount>(slot.gradient.fp32 + i);
  } else {
    const auto narrow = load_pack<kCount>(slot.gradient.bf16 + i);
    for (int k = 0; k < kCount; ++k) values.at[k] = __uint_as_float(uint32_t{narrow.at[k].bits} << 16);
  }
  for (int k = 0; k < kCount; ++k) values.at[k] = __fmul_rn(values.at[k], slot.scale);
  return values;
}

template <int kCount>
__device__ void add(Pack<float, kCount>& sum, const Pack<float, kCount>& values) {
  for (int k = 0; k < kCount; ++k) sum.at[k] = __fadd_rn(sum.at[k], values.at[k]);
}

struct Window {
  DeviceSlot slots[kMaxWindowSlots];
  int num_slots;
  float mean_scale;
};

template <int kCount>
__device__ Pack<float, kCount> mean_gradient(const Window& window, int64_t i) {
  auto sum = load_scaled<kCount>(window.slots[0], i);
  for (int slot = 1; slot < window.num_slots; ++slot) add(sum, load_scaled<kCount>(window.slots[slot], i));
  for (int k = 0; k < kCount; ++k) sum.at[k] = __fmul_rn(sum.at[k], window.mean_scale);
  return sum;
}

struct Update {
  DeviceState state;
  const int32_t* channels;  // null: the master is compact
  MatrixShape shape;
  int64_t first_line, line_width, count;
  bool has_packs;  // whether neighbours of the compact form are neighbours in the master, and aligned
  DeviceCorrections corrections;
  Window window;
  AdamWConstants constants;
};

// An element of the compact form by line, from the first of the call on, and place in it.
struct Element {
  int64_t line, at;
};

__device__ Element element_at(const Update& u, int64_t i) { return {i / u.line_width, i % u.line_width}; }

__device__ Element next(const Update& u, Element e) {
  return e.at + 1 < u.line_width ? Element{e.line, e.at + 1} : Element{e.line + 1, 0};
}

__device__ int64_t position_of(const Update& u, Element e) {
  return u.shape.axis == Axis::kColumns ? e.at : u.first_line + e.line;
}

__device__ float& master_at(const Update& u, Element e) {
  if (u.channels == nullptr) return u.state.master[e.line * u.line_width + e.at];
  const int64_t line = u.first_line + e.line;
  if (u.shape.axis == Axis::kColumns) return u.state.master[line * u.shape.width + u.channels[e.at]];
  return u.state.master[u.channels[line] * u.shape.width + e.at];
}

template <int kCount>
__device__ Pack<float, kCount> load_master(const Update& u, Element e) {
  if (u.has_packs) return load_pack<kCount>(&master_at(u, e));
  Pack<float, kCount> master;
  for (int k = 0; k < kCount; ++k, e = next(u, e)) master.at[k] = master_at(u, e);
  return master;
}

template <int kCount>
__device__ void store_master(const Pack<float, kCount>& master, const Update& u, Element e) {
  if (u.has_packs) return store_pack(master, &master_at(u, e));
  for (int k = 0; k < kCount; ++k, e = next(u, e)) master_at(u, e) = master.at[k];
}

template <int kCount>
__device__ void update_pack(const Update& u, int64_t i) {
  const Element first = element_at(u, i);
  auto master = load_master<kCount>(u, first);
  auto m = load_pack<kCount>(u.state.m + i), v = load_pack<kCount>(u.state.v + i);
  const auto gradient = mean_gradient<kCount>(u.window, i);
  Element e = first;
  for (int k = 0; k < kCount; ++k, e = next(u, e)) {
    const int64_t position = position_of(u, e);
    const BiasCorrection own{u.corrections.step_size[position], u.corrections.second_correction[position]};
    update_element(master.at[k], m.at[k], v.at[k], gradient.at[k], u.constants.keep, u.constants, own);
  }
  store_master(master, u, first);
  store_pack(m, u.state.m + i);
  store_pack(v, u.state.v + i);
}

// The last elements may be fewer than a pack.
template <int kCount>
__global__ void __launch_bounds__(kThreads) update_kernel(const __grid_constant__ Update u) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (i + kCount <= u.count) return update_pack<kCount>(u, i);
  for (int64_t j = i; j < u.count; ++j) update_pack<1>(u, j);
}

template <int kCount>
__device__ void accumulate_pack(float* sum, const DeviceSlot& slot, bool is_first, int64_t i) {
  auto values = load_scaled<kCount>(slot, i);
  if (!is_first) {
    auto before = load_pack<kCount>(sum + i);
    add(before, values);
    values = before;
  }
  store_pack(values, sum + i);
}

template <int kCount>
__global__ void __launch_bounds__(kThreads)
    accumulate_kernel(float* sum, int64_t count, const DeviceSlot slot, bool is_first) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (i + kCount <= count) return accumulate_pack<kCount>(sum, slot, is_first, i);
  for (int64_t j = i; j < count; ++j) accumulate_pack<1>(sum, slot, is_first, j);
}

bool is_wide_slot(const DeviceSlot& slot) { return is_wide(slot.gradient.fp32) && is_wide(slot.gradient.bf16); }

Window window_of(const char* verb, const DeviceWindow& window) {
  if (window.slots.empty() || window.slots.size() > kMaxWindowSlots) {
    throw InternalError(
        verb, std::to_string(window.slots.size()) + " slots, must be 1 to " + std::to_string(kMaxWindowSlots) + ".");
  }
  Window packed{};
  std::copy(window.slots.begin(), window.slots.end(), packed.slots);
  packed.num_slots = static_cast<int>(window.slots.size());
  packed.mean_scale = window.mean_scale;
  return packed;
}

Update update_of(const char* verb, const DeviceState& state, const MatrixShape& shape, Lines lines,
                 const DeviceStep& step) {
  expect_shape(verb, shape);
  const auto num_chosen = static_cast<size_t>(step.corrections.count);
  const size_t count = compact_length(verb, shape, lines, num_chosen);
  return {.state = state,
          .channels = nullptr,
          .shape = shape,
          .first_line = lines.begin,
          .line_width = line_width(shape, num_chosen),
          .count = static_cast<int64_t>(count),
          .has_packs = true,
          .corrections = step.corrections,
          .window = window_of(verb, step.window),
          .constants = constants_of(step.adamw)};
}

void launch_update(const char* verb, const Update& update, std::span<const DeviceSlot> slots, CUstream_st* stream) {
  if (update.count == 0) return;
  const bool is_wide_state =
      is_wide(update.state.m) && is_wide(update.state.v) && (!update.has_packs || is_wide(update.state.master));
  if (is_wide_state && std::all_of(slots.begin(), slots.end(), is_wide_slot)) {
    launch(update_kernel<kWide>, blocks_for(update.count, kThreads * kWide), stream, update);
  } else {
    launch(update_kernel<1>, blocks_for(update.count, kThreads), stream, update);
  }
  expect_launched(verb);
}

}  // namespace

void adamw_update_channels(const DeviceState& state, const MatrixShape& shape, Lines lines, const DeviceStep& step,
                           CUstream_st* stream) {
  constexpr auto kVerb = "kernel.cuda.adamw_update_channels";
  launch_update(kVerb, update_of(kVerb, state, shape, lines, step), step.window.slots, stream);
}

void adamw_update_selected(const DeviceState& state, const int32_t* channels, const MatrixShape& shape, Lines lines,
                           const DeviceStep& step, CUstream_st* stream) {
  constexpr auto kVerb = "kernel.cuda.adamw_update_selected";
  Update update = update_of(kVerb, state, shape, lines, step);
  update.channels = channels;
  update.has_packs = shape.axis == Axis::kRows && shape.width % kWide == 0 && is_wide(state.master);
  launch_update(kVerb, update, step.window.slots, stream);
}

void accumulate_gradient(float* sum, int64_t count, const DeviceSlot& slot, bool is_first, CUstream_st* stream) {
  if (count == 0) return;
  if (is_wide(sum) && is_wide_slot(slot)) {
    launch(accumulate_kernel<kWide>, blocks_for(count, kThreads * kWide), stream, sum, count, slot, is_first);
  } else {
    launch(accumulate_kernel<1>, blocks_for(count, kThreads), stream, sum, count, slot, is_first);
  }
  expect_launched("kernel.cuda.accumulate_gradient");
}

}  // namespace headrace::kernel::cuda
