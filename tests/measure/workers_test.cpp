#include "headrace/measure/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/measure/adamw.h"
#include "headrace/measure/triad.h"

namespace headrace::measure {
namespace {

TEST(Workers, EachRunsOnceARound) {
  Workers workers(3);
  std::vector<int> calls(3);
  for (int round = 1; round <= 100; ++round) {
    workers.run([&](int worker) { ++calls[static_cast<size_t>(worker)]; });
    ASSERT_EQ(calls, std::vector<int>(3, round));
  }
}

TEST(Triad, TouchesWhatItClaims) {
  constexpr size_t kCount = 128;
  struct alignas(64) Array {
    uint32_t words[kCount];
  } read, wide, narrow, written, before;
  std::iota(read.words, read.words + kCount, 1u);
  wide = narrow = written = before = Array{};
  const auto bytes = [](Array& a) { return reinterpret_cast<std::byte*>(a.words); };
  for (const size_t width : {2u, 4u}) {
    const Streams streams{{{bytes(wide), 4}, {bytes(narrow), 2}}, {bytes(read), width}, {{bytes(written), 2}}};
    EXPECT_EQ(bytes_per_element(streams), width + 2 * 6 + 2);
    for (const bool prefetch : {false, true}) {
      wide = narrow = before;
      triad(streams, 0, kCount, 0, prefetch);
      EXPECT_TRUE(std::ranges::equal(wide.words, before.words) && std::ranges::equal(narrow.words, before.words));
      triad(streams, 32, kCount, 0xff, prefetch);
      for (size_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(wide.words[i] != 0, i >= 32) << i;
        EXPECT_EQ(narrow.words[i] != 0, i >= 16 && i < kCount / 2) << i;
        EXPECT_EQ(written.words[i] != 0, i >= 16 && i < kCount / 2) << i;
      }
      written = before;
    }
  }
  EXPECT_THROW(triad({{}, {bytes(read), 4}, {}}, 0, 31, 0, false), InternalError);
}

TEST(AdamWMeasure, RowsForEveryVariantAndContender) {
  int steps = 0;
  const Contender contender{"other", 28, [&](const AdamWArrays& arrays, int) {
                              EXPECT_EQ(arrays.m.size(), 1024u);
                              ++steps;
                            }};
  const std::vector<AdamWRow> rows = adamw({.parameters = 1000, .repeats = 2, .threads = {1, 2}}, {contender});
  ASSERT_EQ(rows.size(), 14u);
  EXPECT_EQ(steps, 6);  // two rounds and one before, for each number of threads
  std::vector<double> bytes;
  for (size_t i = 0; i < 7; ++i) {
    bytes.push_back(rows[i].bytes_per_param);
    EXPECT_GT(rows[i].mparam_per_s, 0);
    EXPECT_GT(rows[i].share_of_triad, 0);
  }
  EXPECT_EQ(bytes, (std::vector<double>{28, 26, 30, 28, 28, 26, 28}));
  EXPECT_THROW(adamw({.repeats = 0}, {}), ConfigError);
  EXPECT_THROW(adamw({.threads = {0}}, {}), ConfigError);
}

}  // namespace
}  // namespace headrace::measure
