// The memory of one AdamW pass as bare pointers: what the kernels' entries hand to the code of one instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/kernel/adamw.h"
#include "headrace/kernel/adamw_constants.h"

namespace headrace::kernel {

// [elements] a pass takes at a time: two cache lines of fp32, one of 16-bit halves.
inline constexpr size_t kAdamWBlock = 32;

struct MasterPointers {
  float* fp32 = nullptr;     // the master, or
  uint16_t* bf16 = nullptr;  // its rounded copy beside it, or its upper half with
  int16_t* lower = nullptr;  // its lower half
};

struct Moments {
  float* m;
  float* v;
};

struct GradientPointers {  // one of the two
  const float* fp32;
  const uint16_t* bf16;
};

inline size_t length(const Gradient& gradient) {
  return std::visit([](const auto& values) { return values.size(); }, gradient);
}

inline GradientPointers pointers(const Gradient& gradient) {
  if (const auto* fp32 = std::get_if<std::span<const float>>(&gradient)) return {fp32->data(), nullptr};
  return {nullptr, &std::get<std::span<const Bf16>>(gradient).data()->bits};
}

// A window's gradients, and what else is the same for each of its elements.
struct SlotPointers {
  GradientPointers gradient;
  float scale;
};
struct WindowUpdate {
  std::span<const SlotPointers> slots;
  float mean_scale;
  AdamWConstants adamw;
};

// Elements in a row; `first` is where they begin in each slot.
struct WindowStretch {
  float* master;
  Moments moments;
  size_t first, count;
};

// The corrections of the elements of a line, over and over: `period` of them, at least a block, and a block more.
struct RepeatedCorrections {
  std::vector<float> step_size, second_correction;
  size_t period;
};

}  // namespace headrace::kernel
