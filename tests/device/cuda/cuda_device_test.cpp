#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/device/cuda.h"

namespace headrace::device {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (const cudaError_t result = cudaGetDeviceCount(&count); result != cudaSuccess || count == 0) {
      GTEST_SKIP() << "no usable GPU: " << cudaGetErrorString(result);
    }
  }
};

void fill(std::byte* bytes, int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::generate_n(bytes, count, [&] { return static_cast<std::byte>(random()); });
}

// From `from` to the device and back to `to`, whose last byte must stay.
void expect_round_trip(Device& device, const std::byte* from, std::byte* to, int64_t bytes) {
  const Slab far = device.allocate(Tier::kDevice, bytes + 1);
  to[bytes] = std::byte{0xee};
  device.copy(Direction::kToDevice, far.data() + 1, from, bytes);
  device.copy(Direction::kToHost, to, far.data() + 1, bytes);
  EXPECT_TRUE(std::equal(from, from + bytes, to)) << bytes << " bytes";
  EXPECT_EQ(to[bytes], std::byte{0xee});
}

TEST_F(CudaDevice, BytesComeBackPageLockedAndPageable) {
  const auto device = cuda::make_device({});
  EXPECT_EQ(device->kind(), Kind::kCuda);
  EXPECT_THAT(device->describe(), HasSubstr("cuda: "));
  for (const int64_t bytes : {int64_t{1}, int64_t{4097}, 33 * kMiB + 3}) {
    const Slab from = device->allocate(Tier::kHost, bytes), to = device->allocate(Tier::kHost, bytes + 1);
    ASSERT_TRUE(from.is_page_locked() && to.is_page_locked());
    EXPECT_EQ(from.bytes(), whole_pages(bytes));
    fill(from.data(), bytes, 1);
    expect_round_trip(*device, from.data(), to.data(), bytes);

    std::vector<std::byte> pageable(static_cast<size_t>(bytes)), back(static_cast<size_t>(bytes) + 1);
    fill(pageable.data(), bytes, 2);
    expect_round_trip(*device, pageable.data(), back.data(), bytes);
  }
  EXPECT_TRUE(device->take_warnings().empty());
}

TEST_F(CudaDevice, AnEventIsPassedWhenComputeHasReachedItAndNotBefore) {
  const auto device = cuda::make_device({});
  const Slab far = device->allocate(Tier::kDevice, kMiB), near = device->allocate(Tier::kHost, kMiB);
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  device->wait(device->record());

  // Compute stands at the gate; what is queued behind it has not run.
  ASSERT_EQ(cudaLaunchHostFunc(
                nullptr, [](void* gate_of) { static_cast<std::shared_future<void>*>(gate_of)->wait(); }, &opened),
            cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(far.data(), 0x5a, static_cast<size_t>(kMiB), nullptr), cudaSuccess);
  const Event event = device->record();
  std::future<void> waiting = std::async(std::launch::async, [&] { device->wait(event); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);

  // Links do not wait for compute.
  std::future<void> copying =
      std::async(std::launch::async, [&] { device->copy(Direction::kToHost, near.data(), far.data(), kMiB); });
  EXPECT_EQ(copying.wait_for(std::chrono::seconds(10)), std::future_status::ready);

  gate.set_value();
  waiting.get();
  copying.get();
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaSuccess);
  device->copy(Direction::kToHost, near.data(), far.data(), kMiB);
  EXPECT_TRUE(std::all_of(near.data(), near.data() + kMiB, [](std::byte byte) { return byte == std::byte{0x5a}; }));
}

TEST_F(CudaDevice, BothDirectionsAtATime) {
  const auto device = cuda::make_device({});
  constexpr int64_t kBytes = 64 * kMiB;
  const Slab up = device->allocate(Tier::kHost, kBytes), down = device->allocate(Tier::kHost, kBytes);
  const Slab first = device->allocate(Tier::kDevice, kBytes), second = device->allocate(Tier::kDevice, kBytes);
  fill(up.data(), kBytes, 3);
  device->copy(Direction::kToDevice, first.data(), up.data(), kBytes);
  std::future<void> h2d =
      std::async(std::launch::async, [&] { device->copy(Direction::kToDevice, second.data(), up.data(), kBytes); });
  device->copy(Direction::kToHost, down.data(), first.data(), kBytes);
  h2d.get();
  EXPECT_TRUE(std::equal(up.data(), up.data() + kBytes, down.data()));
  device->copy(Direction::kToHost, down.data(), second.data(), kBytes);
  EXPECT_TRUE(std::equal(up.data(), up.data() + kBytes, down.data()));
}

TEST_F(CudaDevice, TheBudgetIsHardAndFreedBytesCountAgain) {
  const auto device = cuda::make_device({.budget_bytes = 3 * kMiB});
  Slab two = device->allocate(Tier::kDevice, 2 * kMiB);
  try {
    device->allocate(Tier::kDevice, kMiB + 1);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const CapacityError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("device tier: need "), HasSubstr("(1,052,672 bytes)"),
                                             HasSubstr("(1,048,576 bytes): the budget is ")));
  }
  EXPECT_EQ(device->allocate(Tier::kDevice, kMiB).bytes(), kMiB);
  two = Slab();
  EXPECT_EQ(device->allocate(Tier::kDevice, 3 * kMiB).bytes(), 3 * kMiB);
  EXPECT_NO_THROW(device->allocate(Tier::kHost, 8 * kMiB));
}

TEST_F(CudaDevice, MoreThanTheGpuHasIsRefusedWithBothNumbers) {
  const auto device = cuda::make_device({.budget_bytes = int64_t{1} << 60});
  EXPECT_THROW(device->allocate(Tier::kDevice, int64_t{1} << 50), CapacityError);
  EXPECT_EQ(device->allocate(Tier::kDevice, kMiB).bytes(), kMiB);
}

TEST_F(CudaDevice, SlabsMayOutliveTheDevice) {
  Slab far, near;
  {
    const auto device = cuda::make_device({});
    far = device->allocate(Tier::kDevice, kMiB);
    near = device->allocate(Tier::kHost, kMiB);
  }
  EXPECT_EQ(far.bytes(), kMiB);
  near.data()[kMiB - 1] = std::byte{1};
}

TEST_F(CudaDevice, HostMemoryThatCannotBeLockedIsWarnedOfOnceOrRefused) {
  const auto device = cuda::make_device({});
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THROW(device->allocate(Tier::kHost, int64_t{1} << 60), CapacityError);
  }
  EXPECT_THAT(device->take_warnings(), testing::ElementsAre(HasSubstr("did not page-lock")));
  EXPECT_TRUE(device->take_warnings().empty());
}

TEST_F(CudaDevice, FailuresCarryTheRuntimesText) {
  const auto device = cuda::make_device({});
  std::byte byte{};
  try {
    device->copy(Direction::kToDevice, nullptr, &byte, 1);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("on h2d: invalid argument"));
  }
  const Slab far = device->allocate(Tier::kDevice, 1);
  EXPECT_NO_THROW(device->copy(Direction::kToDevice, far.data(), &byte, 1));
}

TEST(CudaDeviceSettings, AreCheckedBeforeTheGpuIsAsked) {
  EXPECT_THROW(cuda::make_device({.budget_bytes = -1}), ConfigError);
}

}  // namespace
}  // namespace headrace::device
