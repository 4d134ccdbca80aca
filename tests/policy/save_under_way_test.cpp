// A save while the host is still at work on the step that is saved: training goes on at once, and the copy is that of
// the step, bit for bit.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/device/emulated.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "tests/fault/record.h"
#include "tests/policy/relay.h"

namespace headrace::policy {
namespace {

using support::random_weights;

constexpr OptimizerSettings kOptimizer{.weight_decay = 0.1, .clip = 0.5};

// Where copies to the host stand until the test lets them go on, or fail.
class Barrier {
 public:
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  void open(const std::string& error = "") {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = false;
      error_ = error;
    }
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return !is_closed_; });
    if (!error_.empty()) throw DeviceError("device.test", error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_closed_ = false;
  std::string error_;
};

class BarredDevice final : public device::Device {
 public:
  explicit BarredDevice(std::shared_ptr<Barrier> barrier) : barrier_(std::move(barrier)) {}
  device::Kind kind() const override { return inner_->kind(); }
  std::string describe() const override { return inner_->describe(); }
  device::Slab allocate(device::Tier tier, int64_t bytes) override { return inner_->allocate(tier, bytes); }
  void copy(device::Direction direction, std::byte* to, const std::byte* from, int64_t bytes) override {
    if (direction == device::Direction::kToHost) barrier_->pass();
    inner_->copy(direction, to, from, bytes);
  }
  const device::Cores& cores() const override { return inner_->cores(); }

 private:
  const std::unique_ptr<device::Device> inner_ = device::make_emulated_device({});
  const std::shared_ptr<Barrier> barrier_;
};

class SaveUnderWayTest : public ::testing::Test {
 protected:
  using Maker = std::function<std::unique_ptr<Policy>()>;

  SaveUnderWayTest() { at::set_num_threads(1); }

  std::unique_ptr<device::Device> device() const { return std::make_unique<BarredDevice>(barrier_); }
  Maker offload(OffloadSettings settings) const {
    settings.deadline_s = 5;
    return [=, this] { return std::make_unique<Offload>(model_, device(), random_weights(model_, 1), settings); };
  }
  Maker zenflow(ZenFlowSettings settings) const {
    settings.deadline_s = 5;
    return [=, this] { return std::make_unique<ZenFlow>(model_, device(), random_weights(model_, 1), settings); };
  }
  std::vector<Maker> makers() const {
    return {offload({.optimizer = kOptimizer}), offload({.optimizer = {}, .num_device_blocks = 2}),
            offload({.optimizer = {}, .piece_bytes = 1000}),
            zenflow({.optimizer = kOptimizer, .schedule = {.update_interval = 2, .select_interval = 100}}),
            zenflow({.optimizer = kOptimizer,
                     .schedule = {.update_interval = 3, .select_interval = 100},
                     .window_sum = zenflow::WindowSum::kRunning})};
  }

  // Steps [0, count), the last of which ends while its way down to the host is barred.
  void run_barred(Policy& policy, int64_t count) const {
    for (int64_t i = 0; i + 1 < count; ++i) relay_.step(policy, i);
    policy.finish_updates();
    barrier_->close();
    relay_.step(policy, count - 1);
  }

  const model::Model model_ = support::tiny_model();
  const std::shared_ptr<Barrier> barrier_ = std::make_shared<Barrier>();
  const Relay relay_{};
};

void copy_all(const StateCopy& copy, PolicyState& state) {
  for (const auto& copy_part : copy.parts) copy_part(state);
}

// A gradient on its way down stands still while the save begins, and until the copy is asked for; were it waited for,
// the deadline of the lane would end the run. The next steps meanwhile do what they would have done.
TEST_F(SaveUnderWayTest, TrainingDoesNotWaitForWhatIsUnderWay) {
  const std::vector<Maker> all = makers();
  for (size_t maker = 0; maker < all.size(); ++maker) {
    for (int64_t save_after = 3; save_after < 7; ++save_after) {
      SCOPED_TRACE("policy " + std::to_string(maker) + ", saved after " + std::to_string(save_after));
      const auto expected = all[maker]();
      for (int64_t i = 0; i < save_after; ++i) relay_.step(*expected, i);
      const auto saved = all[maker]();
      run_barred(*saved, save_after);
      expect_saved_while_stepping(*saved, *expected, save_after, {.meanwhile = [&](const std::future<void>& copies) {
        EXPECT_EQ(copies.wait_for(std::chrono::milliseconds(5)), std::future_status::timeout);
        barrier_->open();
      }});
    }
  }
}

// The host takes a hundred times as long as it needs: tasks of three steps are mixed in its queue when the save begins.
TEST_F(SaveUnderWayTest, ASlowHostChangesNothing) {
  for (const int32_t workers : {1, 2}) {
    const zenflow::ScheduleSettings schedule{.update_interval = 3, .select_interval = 4};
    for (const auto sum : {zenflow::WindowSum::kSlots, zenflow::WindowSum::kRunning}) {
      const ZenFlowSettings settings{.optimizer = kOptimizer,
                                     .schedule = schedule,
                                     .window_sum = sum,
                                     .host_workers = workers,
                                     .piece_bytes = 2000};
      ZenFlowSettings slow = settings;
      slow.host_bytes_per_s = 2e7;
      for (int64_t save_after = 4; save_after < 10; ++save_after) {
        SCOPED_TRACE(std::to_string(workers) + " workers, saved after " + std::to_string(save_after));
        const auto saved = zenflow(slow)(), expected = zenflow(settings)();
        for (int64_t i = 0; i < save_after; ++i) {
          relay_.step(*saved, i);
          relay_.step(*expected, i);
        }
        expect_saved_while_stepping(*saved, *expected, save_after, {.steps = 4});
      }
    }
  }
}

// A lane that fails ends who copies too, with its error, and the policy can go.
TEST_F(SaveUnderWayTest, ALaneThatFailsEndsTheCopy) {
  for (const Maker& make : makers()) {
    const auto policy = make();
    run_barred(*policy, 3);
    PolicyState state;
    const StateCopy copy = policy->begin_save();
    auto copies = std::async(std::launch::async, [&] { copy_all(copy, state); });
    barrier_->open("the link broke");
    EXPECT_THROW(copies.get(), DeviceError);
    EXPECT_THROW(policy->finish_updates(), DeviceError);
    barrier_->open();
    fault::record("the link to the device breaks", "a save, while updates of its step are under way", "",
                  {"the run ends at once with the device's own error, the save is given up",
                   "the steps since the last checkpoint"});
  }
}

// The last step before the save makes weights so large that the next one overflows: the run ends, the save does not
// suffer.
TEST_F(SaveUnderWayTest, ARunThatEndsWithTheNextStepLeavesTheCopyWhole) {
  const std::vector<model::Batch> batches = {support::random_batch({9}, 1)};
  for (const Maker& make : makers()) {
    const auto policy = make(), expected = make();
    for (int64_t i = 0; i < 3; ++i) expected->step({i, batches, i == 2 ? 1e30 : 1e-3});
    PolicyState at_once, later;
    expected->save(at_once);
    for (int64_t i = 0; i < 2; ++i) policy->step({i, batches, 1e-3});
    policy->finish_updates();
    barrier_->close();
    policy->step({2, batches, 1e30});
    const StateCopy copy = policy->begin_save();
    auto copies = std::async(std::launch::async, [&] { copy_all(copy, later); });
    auto opens = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      barrier_->open();
    });
    EXPECT_THROW(policy->step({3, batches, 1e-3}), RunError);
    copies.get();
    opens.get();
    expect_equal_states(later, at_once);
    fault::record("a gradient is not finite", "the step after a save, while updates of the saved one are under way", "",
                  {"the run ends, the save is completed", "nothing but that step"});
  }
}

}  // namespace
}  // namespace headrace::policy
