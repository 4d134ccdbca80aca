// bf16 as a storage format, and the exact split of an fp32 number into a bf16 and 16 more bits. Pure; any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace headrace::kernel {

// The upper half of an fp32 number's bits. Arithmetic happens in fp32.
struct Bf16 {
  uint16_t bits;
  friend bool operator==(const Bf16&, const Bf16&) = default;
};

inline float to_float(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// The nearest bf16, ties to even; beyond the largest it is infinite. A NaN stays one and becomes quiet.
inline Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// An fp32 number in two halves of 16 bits. `upper` is the nearest bf16, ties away from zero; `lower` is the number's
// signed distance from it in units of fp32's last place, -32768 to 32767. Ties to even would leave 65537 distances.
struct SplitFloat {
  Bf16 upper;
  int16_t lower;
};

// join(split(x)) is x, bit for bit, denormals, infinities and the sign of zero included. A NaN becomes the quiet NaN
// of its sign without payload: rounded, some payloads would carry over and hide the NaN from who sees the upper half.
inline SplitFloat split(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  if (x != x) bits = (bits & 0x80000000u) | 0x7fc00000u;
  return {{static_cast<uint16_t>((bits + 0x8000) >> 16)}, static_cast<int16_t>(bits & 0xffff)};
}

inline float join(SplitFloat x) {
  return std::bit_cast<float>((uint32_t{x.upper.bits} << 16) + static_cast<uint32_t>(int32_t{x.lower}));
}

// The same for whole spans of one length. Throw InternalError when lengths differ.
void to_bf16(std::span<const float> values, std::span<Bf16> rounded);
void split(std::span<const float> values, std::span<Bf16> upper, std::span<int16_t> lower);
void join(std::span<const Bf16> upper, std::span<const int16_t> lower, std::span<float> values);

}  // namespace headrace::kernel
