// What the offload policy does when a lane fails: that error, soon, and a clean end.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/device/emulated.h"
#include "headrace/policy/offload.h"
#include "tests/fault/record.h"
#include "tests/support/tiny_model.h"

namespace headrace::policy {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStandstill{4000};

// An emulated device whose link breaks, or stands still, at one of its copies.
class FaultyDevice final : public device::Device {
 public:
  enum class Fault { kThrows, kIsSlow };
  FaultyDevice(Fault fault, int good_copies)
      : inner_(device::make_emulated_device({})), fault_(fault), good_copies_(good_copies) {}

  device::Kind kind() const override { return inner_->kind(); }
  std::string describe() const override { return inner_->describe(); }
  device::Slab allocate(device::Tier tier, int64_t bytes) override { return inner_->allocate(tier, bytes); }
  void copy(device::Direction direction, std::byte* to, const std::byte* from, int64_t bytes) override {
    if (good_copies_-- == 0) {
      if (fault_ == Fault::kThrows) throw DeviceError("device.test", "the link broke");
      std::this_thread::sleep_for(kStandstill);
    }
    inner_->copy(direction, to, from, bytes);
  }
  const device::Cores& cores() const override { return inner_->cores(); }

 private:
  const std::unique_ptr<device::Device> inner_;
  const Fault fault_;
  std::atomic<int> good_copies_;
};

class OffloadFaultTest : public ::testing::Test {
 protected:
  OffloadFaultTest() { at::set_num_threads(1); }

  std::unique_ptr<Offload> make(FaultyDevice::Fault fault, int good_copies, double deadline_s = 60) {
    OffloadSettings settings{.optimizer = {.clip = 1}};
    settings.deadline_s = deadline_s;
    return std::make_unique<Offload>(model_, std::make_unique<FaultyDevice>(fault, copies_at_start_ + good_copies),
                                     support::random_weights(model_, 1), settings);
  }

  const model::Model model_ = support::tiny_model();
  const int copies_at_start_ = static_cast<int>(model_.num_blocks());  // the weights
  const std::vector<model::Batch> batches_{support::random_batch({9}, 1)};
};

// Case "worker death": at any copy of two steps, a hundred times in all.
TEST_F(OffloadFaultTest, ABrokenLinkEndsTheRunWithItsOwnErrorWithinTwoSeconds) {
  const int copies = 2 * 2 * static_cast<int>(model_.num_blocks());  // down and up, two steps
  for (int i = 0; i < 100; ++i) {
    const auto policy = make(FaultyDevice::Fault::kThrows, i % copies);
    const Clock::time_point begin = Clock::now();
    try {
      for (int64_t step = 0; step < 2; ++step) policy->step({step, batches_, 1e-3});
      policy->finish_updates();
      FAIL() << "copy " << i % copies << " broke unseen";
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find("the link broke"), std::string::npos);
    }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
    EXPECT_THROW(policy->finish_updates(), DeviceError);  // and again, not a hang
    fault::record("the link to the device breaks", "a step of policy offload", "",
                  {"the run ends at once with the device's own error", "the steps since the last checkpoint"});
  }
}

// A lane that hung is left behind and wakes when the policy is long gone: what it works on must still be there (the
// address sanitizer looks).
TEST_F(OffloadFaultTest, ALaneThatStandsStillIsNamedAfterItsDeadline) {
  auto policy = make(FaultyDevice::Fault::kIsSlow, 0, /*deadline_s=*/1);
  const Clock::time_point begin = Clock::now();
  try {
    policy->step({0, batches_, 1e-3});
    policy->finish_updates();
    FAIL() << "a link stood still unseen";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("d2h"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("offload(block"), std::string::npos) << error.what();
  }
  fault::record(
      "the link to the device stands still", "a step of policy offload", "",
      {"the run ends after --lane-deadline; the lane and its task are named", "the steps since the last checkpoint"});
  policy.reset();
  EXPECT_LT(Clock::now() - begin, kStandstill) << "the end waited for the lane";
  std::this_thread::sleep_until(begin + kStandstill + kStandstill / 4);
}

}  // namespace
}  // namespace headrace::policy
