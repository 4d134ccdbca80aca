// Check i of docs/zenflow.md: a run that is saved and restored, at whatever step, computes the same bits.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <string>

#include "headrace/device/emulated.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "tests/policy/relay.h"

namespace headrace::policy {
namespace {

using support::random_weights;
using ::testing::HasSubstr;
using zenflow::WindowSum;

class ZenFlowResumeTest : public ::testing::Test {
 protected:
  ZenFlowResumeTest() { at::set_num_threads(1); }

  std::unique_ptr<ZenFlow> make(const ZenFlowSettings& settings, uint64_t seed = 1) {
    return std::make_unique<ZenFlow>(model_, device::make_emulated_device({}), random_weights(model_, seed), settings);
  }

  void expect_goes_on(const ZenFlowSettings& settings, const Relay& relay = {}) {
    expect_relay([&] { return make(settings); }, [&](int64_t i) { return make(settings, i == 0 ? 1 : 7); }, relay);
  }

  // Runs `first` for so many steps, the rest with `then`.
  std::unique_ptr<ZenFlow> change(const ZenFlowSettings& first, const ZenFlowSettings& then, int64_t at,
                                  std::string* said = nullptr) {
    const auto saved = make(first);
    for (int64_t i = 0; i < at; ++i) Relay{}.step(*saved, i);
    PolicyState state;
    saved->save(state);
    auto goes_on = make(then, 7);
    goes_on->restore(state, {.say = [&](const std::string& text) {
                       if (said != nullptr) *said = text;
                     }});
    return goes_on;
  }

  model::Model model_ = support::tiny_model();
};

TEST_F(ZenFlowResumeTest, AnySettingsGoOnBitForBit) {
  Rng rng(31);
  const auto draw = [&](uint64_t below) { return static_cast<int64_t>(rng.below(below)); };
  for (int i = 0; i < 60; ++i) {
    ZenFlowSettings settings{.optimizer = {.weight_decay = 0.1, .clip = draw(2) == 0 ? 0 : 0.5}};
    settings.topk_ratio = std::vector<double>{0.01, 0.1, 0.3, 1}[static_cast<size_t>(draw(4))];
    settings.schedule = {.update_interval = 1 + draw(5),
                         .warmup_steps = 1 + draw(3),
                         .select_interval = 1 + draw(6),
                         .overlaps = draw(4) != 0,
                         .staggers = draw(3) != 0};
    settings.select_margin = draw(2) == 0 ? 1 : 1.25;
    settings.deferred_rate = static_cast<DeferredRate>(draw(3));
    settings.window_sum = draw(2) == 0 ? WindowSum::kSlots : WindowSum::kRunning;
    settings.num_device_blocks = draw(4) == 0 ? static_cast<int32_t>(draw(4)) : 0;
    settings.host_workers = static_cast<int32_t>(1 + draw(2));
    settings.piece_bytes = 256 + draw(16384);
    if (draw(8) == 0) settings.host_bytes_per_s = 3e7;
    SCOPED_TRACE("configuration " + std::to_string(i));
    expect_goes_on(settings, {.steps = 12, .micro_batches = 1 + draw(2)});
    if (HasFatalFailure()) FAIL();
  }
}

TEST_F(ZenFlowResumeTest, GoesOnWhereChannelsAreRows) {
  model_ = model::Model(config::ModelShape::parse(support::kTinyGpt2, "tiny gpt2"));
  for (const WindowSum sum : {WindowSum::kSlots, WindowSum::kRunning}) {
    expect_goes_on({.optimizer = {.weight_decay = 0.1, .clip = 0.5},
                    .topk_ratio = 0.2,
                    .schedule = {.update_interval = 3, .select_interval = 2},
                    .select_margin = 1,
                    .window_sum = sum,
                    .piece_bytes = 1500});
  }
}

// Slots or a running sum, any workers and pieces: no bit depends on which.
TEST_F(ZenFlowResumeTest, TheWindowSumMayChange) {
  const auto settings = [](int64_t i) {
    return ZenFlowSettings{.optimizer = {.weight_decay = 0.1, .clip = 0.5},
                           .schedule = {.update_interval = 4, .select_interval = 4},
                           .select_margin = 1,
                           .window_sum = i % 2 == 0 ? WindowSum::kSlots : WindowSum::kRunning,
                           .host_workers = static_cast<int32_t>(1 + i % 3),
                           .piece_bytes = 1000 * (i + 1)};
  };
  expect_relay([&] { return make(settings(0)); }, [&](int64_t i) { return make(settings(i)); }, {.steps = 14});
}

TEST_F(ZenFlowResumeTest, MeasuresGoOn) {
  const ZenFlowSettings settings{.schedule = {.update_interval = 3}};
  const auto whole = make(settings), goes_on = change(settings, settings, 7);
  for (int64_t i = 0; i < 12; ++i) Relay{}.step(*whole, i);
  for (int64_t i = 7; i < 12; ++i) Relay{}.step(*goes_on, i);
  EXPECT_EQ(goes_on->staleness().largest(), whole->staleness().largest());
  EXPECT_EQ(goes_on->staleness().mean(), whole->staleness().mean());
  EXPECT_EQ(goes_on->step_metrics()["energy_of_important"], whole->step_metrics()["energy_of_important"]);
}

// A window under way ends within the new length, and the bound of the longer windows holds for what was under way.
TEST_F(ZenFlowResumeTest, TheUpdateIntervalMayChange) {
  for (const int64_t before : {1, 2, 5}) {
    for (const int64_t after : {1, 3, 8}) {
      for (int64_t at = 1; at < 9; ++at) {
        const ZenFlowSettings first{.schedule = {.update_interval = before}};
        ZenFlowSettings then = first;
        then.schedule.update_interval = after;
        const auto policy = change(first, then, at);
        for (int64_t i = at; i < at + 12; ++i) Relay{}.step(*policy, i);
        policy->finish_training();
        EXPECT_LE(policy->staleness().largest(), 2 * std::max(before, after) - 1);
        EXPECT_EQ(policy->update_interval(), after);
      }
    }
  }
}

// Nothing is lost when the share changes: the window under way is applied, which is what its end would have done.
TEST_F(ZenFlowResumeTest, TheShareMayChange) {
  for (const double share : {0.02, 0.5, 1.0}) {
    for (int64_t at = 1; at < 9; ++at) {
      const ZenFlowSettings first{.topk_ratio = 0.2, .schedule = {.update_interval = 3, .select_interval = 3}};
      ZenFlowSettings then = first;
      then.topk_ratio = share;
      std::string said;
      const auto changed = change(first, then, at, &said), finished = change(first, first, at);
      EXPECT_THAT(said, HasSubstr("chosen by their scores"));
      finished->finish_training();
      for (size_t i = 0; i < changed->blocks().size(); ++i) {
        ASSERT_TRUE(at::equal(changed->blocks()[i].weights, finished->blocks()[i].weights)) << "block " << i;
      }
      for (size_t b = 0; b < changed->columns().size(); ++b) {
        for (size_t m = 0; m < changed->columns()[b].matrices.size(); ++m) {
          EXPECT_EQ(changed->columns()[b].matrices[m].updates, finished->columns()[b].matrices[m].updates);
        }
      }
      for (int64_t i = at; i < at + 8; ++i) Relay{}.step(*changed, i);
    }
  }
}

}  // namespace
}  // namespace headrace::policy
