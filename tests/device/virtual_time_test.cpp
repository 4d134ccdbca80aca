#include "headrace/device/virtual_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "headrace/base/errors.h"

namespace headrace::device {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

// A thread on a clock of its own that wakes `late` after the time it sleeps to.
struct Sleeper {
  VirtualTime time;
  int64_t now = 0;

  void begin(int64_t late = 0) { sleep(time.begin(now), late); }
  void moved(int64_t bytes, int64_t work, int64_t late = 0) {
    now += work;
    sleep(time.moved(bytes, now), late);
  }

 private:
  void sleep(int64_t due, int64_t late) {
    if (due > now) now = due + late;
    time.waited(now);
  }
};

TEST(VirtualTime, IsLatencyAndBytesOverRate) {
  Sleeper link{VirtualTime({.bytes_per_s = 1e9, .latency_s = 0.002})};
  link.begin();
  EXPECT_EQ(link.now, 2 * kMillisecond);
  link.moved(3'000'000, 0);
  EXPECT_EQ(link.now, 5 * kMillisecond);
  link.moved(1, 0);
  EXPECT_EQ(link.now, 5 * kMillisecond + 1);
}

TEST(VirtualTime, WorkBesideTheRateCostsNothing) {
  Sleeper link{VirtualTime({.bytes_per_s = 1e9})};
  link.begin();
  for (int piece = 0; piece < 10; ++piece) link.moved(1'000'000, 900'000);
  EXPECT_EQ(link.now, 10 * kMillisecond);
}

TEST(VirtualTime, LatenessDoesNotAddUpOverManyPasses) {
  std::mt19937 random(20260102);
  std::uniform_int_distribution<int64_t> late(0, 2 * kMillisecond), piece(1, 3'000'000);
  Sleeper link{VirtualTime({.bytes_per_s = 1e9, .latency_s = 0.0005})};
  int64_t ideal = 0;
  for (int pass = 0; pass < 10'000; ++pass) {
    link.begin(late(random));
    ideal += kMillisecond / 2;
    for (int i = 0; i < 3; ++i) {
      const int64_t bytes = piece(random);
      ideal += bytes;
      link.moved(bytes, 0, late(random));
    }
    ASSERT_GE(link.now, ideal);
    ASSERT_LE(link.now, ideal + 2 * kMillisecond);
  }
}

TEST(VirtualTime, TimeLeftIdleIsNotCaughtUp) {
  Sleeper link{VirtualTime({.bytes_per_s = 1e9})};
  link.begin();
  link.moved(1'000'000, 0, kMillisecond);  // ends at 2, should have at 1
  link.now += 50 * kMillisecond;
  const int64_t asked = link.now;
  link.begin();
  link.moved(4'000'000, 0);
  EXPECT_EQ(link.now, asked + 3 * kMillisecond);
}

TEST(VirtualTime, ALinkThatCannotKeepItsRateCatchesUpOnlyTheLimit) {
  Sleeper link{VirtualTime({.bytes_per_s = 1e9})};
  link.begin();
  link.moved(1'000'000, 500 * kMillisecond);
  const int64_t asked = link.now;
  link.begin();
  link.moved(30'000'000, 0);
  EXPECT_EQ(link.now, asked + 30 * kMillisecond - VirtualTime::kMaxLateness_ns);
}

TEST(VirtualTime, WithoutARateBytesTakeWhatTheyTakeAndLatencyStillCounts) {
  Sleeper link{VirtualTime({.latency_s = 0.001})};
  for (int pass = 1; pass <= 3; ++pass) {
    link.begin();
    link.moved(1 << 30, 5 * kMillisecond);
    EXPECT_EQ(link.now, pass * 6 * kMillisecond);
  }
  Sleeper free{VirtualTime(Rate{})};
  free.begin();
  free.moved(1 << 30, 0);
  EXPECT_EQ(free.now, 0);
}

TEST(VirtualTime, RefusesRatesThatAreNone) {
  for (const double wrong : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(VirtualTime({.bytes_per_s = wrong}), ConfigError);
    EXPECT_THROW(VirtualTime({.latency_s = wrong}), ConfigError);
  }
}

}  // namespace
}  // namespace headrace::device
