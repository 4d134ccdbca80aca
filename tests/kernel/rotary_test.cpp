#include "headrace/kernel/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "headrace/base/errors.h"

namespace headrace::kernel {
namespace {

TEST(Rotary, TurnsPairsAndBack) {
  constexpr size_t kRows = 3, kHeads = 2, kStride = 60;
  for (const size_t half : {3u, 8u, 13u}) {
    std::vector<float> data(kRows * kStride), cos(kRows * half), sin(kRows * half);
    for (size_t i = 0; i < data.size(); ++i) data[i] = 0.1f * static_cast<float>(i % 23) - 1;
    for (size_t i = 0; i < cos.size(); ++i) {
      cos[i] = static_cast<float>(std::cos(0.3 * static_cast<double>(i)));
      sin[i] = static_cast<float>(std::sin(0.3 * static_cast<double>(i)));
    }
    const std::vector<float> start = data;
    rotate({data.data(), kRows, kStride, kHeads}, half, cos, sin, false);
    for (size_t i = 0; i < data.size(); ++i) {
      const size_t row = i / kStride, column = i % kStride;
      if (column >= kHeads * 2 * half) {
        EXPECT_EQ(data[i], start[i]) << "beyond the heads";
        continue;
      }
      const size_t r = column % half, is_second = column / half % 2;
      const float c = cos[row * half + r], s = sin[row * half + r];
      const float expected = is_second ? start[i] * c + start[i - half] * s : start[i] * c - start[i + half] * s;
      EXPECT_NEAR(data[i], expected, 1e-6) << i;
    }
    rotate({data.data(), kRows, kStride, kHeads}, half, cos, sin, true);
    for (size_t i = 0; i < data.size(); ++i) EXPECT_NEAR(data[i], start[i], 1e-6) << i;
  }
}

TEST(Rotary, WrongLengthsAreOurBug) {
  std::vector<float> data(8), table(2);
  EXPECT_THROW(rotate({data.data(), 2, 4, 1}, 2, table, table, false), InternalError);
  EXPECT_THROW(rotate({data.data(), 1, 3, 1}, 2, table, table, false), InternalError);
}

}  // namespace
}  // namespace headrace::kernel
