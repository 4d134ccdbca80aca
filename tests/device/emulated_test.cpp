#include "headrace/device/emulated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/device/pace.h"
#include "headrace/os/affinity.h"

namespace headrace::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr double kGiB = 1 << 30;
// How much longer than set a copy may take here; on a busy machine others take the time.
constexpr double kSlack = 3;

double seconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Two slabs whose pages are there, so that a copy's time is the copy's.
struct Ends {
  explicit Ends(Device& device, int64_t bytes)
      : host(device.allocate(Tier::kHost, bytes)), far(device.allocate(Tier::kDevice, bytes)) {
    std::memset(host.data(), 1, static_cast<size_t>(bytes));
    std::memset(far.data(), 2, static_cast<size_t>(bytes));
  }
  Slab host, far;
};

TEST(Emulated, CopiesEverySizeAtEveryAlignmentBitForBit) {
  constexpr int64_t kBytes = 5 * kMiB, kEdge = 128;
  const auto device = make_emulated_device({});
  std::vector<std::byte> from(kBytes + 2 * kEdge), to(from.size());
  std::mt19937 random(20260103);
  for (std::byte& byte : from) byte = static_cast<std::byte>(random());
  for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
    for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{4097}, Pace::kPieceBytes - 1,
                                Pace::kPieceBytes, Pace::kPieceBytes + 1, kBytes - 1}) {
      const auto read = static_cast<int64_t>(random() % kEdge), written = static_cast<int64_t>(random() % kEdge);
      std::vector<std::byte> expected(to.size(), std::byte{0xee});
      std::copy_n(from.begin() + read, bytes, expected.begin() + written);
      std::fill(to.begin(), to.end(), std::byte{0xee});
      device->copy(direction, to.data() + written, from.data() + read, bytes);
      EXPECT_EQ(to, expected) << bytes << " bytes from offset " << read << " to " << written;
    }
  }
}

TEST(Emulated, CopyTakesLatencyAndBytesOverRate) {
  const auto device = make_emulated_device({.to_device = {.bytes_per_s = kGiB}, .to_host = {.latency_s = 0.05}});
  const Ends ends(*device, 64 * kMiB);
  const double down = seconds([&] { device->copy(Direction::kToHost, ends.host.data(), ends.far.data(), 1); });
  EXPECT_GE(down, 0.05);
  EXPECT_LE(down, kSlack * 0.05);
  const double up = seconds([&] { device->copy(Direction::kToDevice, ends.far.data(), ends.host.data(), 64 * kMiB); });
  EXPECT_GE(up, 0.0625);
  EXPECT_LE(up, kSlack * 0.0625);
}

TEST(Emulated, ManyCopiesTakeWhatTheLinkTakes) {
  const auto device = make_emulated_device({.to_device = {.bytes_per_s = kGiB, .latency_s = 1e-4}});
  const Ends ends(*device, kMiB);
  constexpr int kCopies = 200;
  const double floor = kCopies * (1.0 / 1024 + 1e-4);
  const double taken = seconds([&] {
    for (int i = 0; i < kCopies; ++i) {
      device->copy(Direction::kToDevice, ends.far.data(), ends.host.data(), kMiB);
    }
  });
  EXPECT_GE(taken, floor);
  EXPECT_LE(taken, kSlack * floor);
}

TEST(Emulated, WithoutARateNothingIsWaitedFor) {
  const auto device = make_emulated_device({});
  const Ends ends(*device, 64 * kMiB);
  const double paced = 64.0 / 64;  // [s] what a link of 64 MiB/s would take
  EXPECT_LT(seconds([&] { device->copy(Direction::kToDevice, ends.far.data(), ends.host.data(), 64 * kMiB); }), paced);
}

TEST(Emulated, DirectionsDoNotShareTheirTime) {
  const auto device =
      make_emulated_device({.to_device = {.bytes_per_s = kGiB / 8}, .to_host = {.bytes_per_s = kGiB / 4}});
  const Ends up(*device, 32 * kMiB), down(*device, 32 * kMiB);
  std::latch start(2);
  double up_s = 0, down_s = 0;
  const double both = seconds([&] {
    std::jthread h2d([&] {
      start.arrive_and_wait();
      up_s = seconds([&] { device->copy(Direction::kToDevice, up.far.data(), up.host.data(), 32 * kMiB); });
    });
    start.arrive_and_wait();
    down_s = seconds([&] { device->copy(Direction::kToHost, down.host.data(), down.far.data(), 32 * kMiB); });
  });
  EXPECT_GE(up_s, 0.25);
  EXPECT_GE(down_s, 0.125);
  EXPECT_LE(down_s, kSlack * 0.125);
  EXPECT_LE(both, kSlack * 0.25);
  EXPECT_EQ(up.far.data()[32 * kMiB - 1], std::byte{1});
  EXPECT_EQ(down.host.data()[32 * kMiB - 1], std::byte{2});
}

TEST(Emulated, TwoCopiesAtATimeOnOneDirectionAreOurBug) {
  const auto device = make_emulated_device({.to_device = {.latency_s = 0.5}});
  std::array<std::byte, 2> from{}, to{};
  std::latch start(2);
  std::atomic<int> refusals = 0;
  const auto copy = [&](size_t nth) {
    start.arrive_and_wait();
    try {
      device->copy(Direction::kToDevice, &to[nth], &from[nth], 1);
    } catch (const InternalError& error) {
      EXPECT_THAT(error.what(), HasSubstr("two copies at a time on h2d"));
      ++refusals;
    }
  };
  {
    std::jthread other(copy, 1);
    copy(0);
  }
  EXPECT_EQ(refusals, 1);
  EXPECT_NO_THROW(device->copy(Direction::kToDevice, &to[0], &from[0], 1));
}

TEST(Emulated, SaysWhatItIs) {
  const std::vector<int> cores = os::allowed_cores();
  const auto device = make_emulated_device({.to_device = {.bytes_per_s = 12 * kGiB, .latency_s = 1e-5}});
  EXPECT_EQ(device->kind(), Kind::kEmulated);
  EXPECT_THAT(device->describe(),
              AllOf(HasSubstr("emulated"), HasSubstr("compute on cores " + text_of(split(cores).compute)),
                    HasSubstr("host on cores " + text_of(split(cores).host)),
                    HasSubstr("h2d at 12.0 GiB/s after 10 us"), HasSubstr("d2h unpaced")));
  EXPECT_EQ(device->record().mark(), nullptr);
}

TEST(Emulated, TakesTheCoresThatItIsGiven) {
  const int first = os::allowed_cores().front();
  const auto device = make_emulated_device({.cores = {.compute = {first}, .host = {first}}});
  EXPECT_EQ(device->cores().compute, std::vector<int>{first});
  EXPECT_EQ(device->cores().host, std::vector<int>{first});
}

TEST(Emulated, RefusesSettingsThatContradict) {
  const int first = os::allowed_cores().front();
  EXPECT_THROW(make_emulated_device({.cores = {.compute = {first}, .host = {}}}), ConfigError);
  EXPECT_THROW(make_emulated_device({.cores = {.compute = {}, .host = {first}}}), ConfigError);
  EXPECT_THROW(make_emulated_device({.cores = {.compute = {first}, .host = {1 << 20}}}), ConfigError);
  EXPECT_THROW(make_emulated_device({.to_host = {.bytes_per_s = -1}}), ConfigError);
}

TEST(Pace, HoldsAWorkersPassesToItsShareOfTheRate) {
  Pace pace({.bytes_per_s = kGiB});
  const double taken = seconds([&] {
    for (int pass = 0; pass < 4; ++pass) {
      pace.begin();
      for (int piece = 0; piece < 8; ++piece) pace.moved(2 * kMiB);
    }
  });
  EXPECT_GE(taken, 0.0625);
  EXPECT_LE(taken, kSlack * 0.0625);
}

}  // namespace
}  // namespace headrace::device
