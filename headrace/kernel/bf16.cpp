#include "headrace/kernel/bf16.h"

#include <string>

#include "headrace/base/errors.h"

namespace headrace::kernel {
namespace {

void expect_equal(const char* verb, size_t a, size_t b) {
  if (a != b) throw InternalError(verb, "lengths " + std::to_string(a) + " and " + std::to_string(b) + " must agree.");
}

}  // namespace

void to_bf16(std::span<const float> values, std::span<Bf16> rounded) {
  expect_equal("kernel.to_bf16", values.size(), rounded.size());
  for (size_t i = 0; i < values.size(); ++i) rounded[i] = to_bf16(values[i]);
}

void split(std::span<const float> values, std::span<Bf16> upper, std::span<int16_t> lower) {
  expect_equal("kernel.split", values.size(), upper.size());
  expect_equal("kernel.split", values.size(), lower.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const SplitFloat halves = split(values[i]);
    upper[i] = halves.upper;
    lower[i] = halves.lower;
  }
}

void join(std::span<const Bf16> upper, std::span<const int16_t> lower, std::span<float> values) {
  expect_equal("kernel.join", upper.size(), values.size());
  expect_equal("kernel.join", lower.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = join({upper[i], lower[i]});
}

}  // namespace headrace::kernel
