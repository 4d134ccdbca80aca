#include "headrace/policy/state.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "headrace/base/errors.h"
#include "headrace/device/emulated.h"
#include "headrace/optim/adamw.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/resident.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "tests/policy/relay.h"
#include "tests/support/thrown.h"

namespace headrace::policy {
namespace {

using support::random_weights;
using support::thrown;
using ::testing::HasSubstr;

constexpr OptimizerSettings kOptimizer{.weight_decay = 0.1, .clip = 0.5};

class StateTest : public ::testing::Test {
 protected:
  StateTest() { at::set_num_threads(1); }

  std::unique_ptr<Policy> resident(uint64_t seed = 1) {
    return std::make_unique<Resident>(model_, random_weights(model_, seed), Resident::Settings{kOptimizer});
  }
  std::unique_ptr<Policy> offload(OffloadSettings settings, uint64_t seed = 1) {
    return std::make_unique<Offload>(model_, device::make_emulated_device({}), random_weights(model_, seed), settings);
  }
  std::unique_ptr<Policy> zenflow(ZenFlowSettings settings, uint64_t seed = 1) {
    return std::make_unique<ZenFlow>(model_, device::make_emulated_device({}), random_weights(model_, seed), settings);
  }

  const model::Model model_ = support::tiny_model();
};

// A fresh policy's own weights, here another seed's, do not matter.
TEST_F(StateTest, ResidentGoesOnBitForBit) {
  expect_relay([&] { return resident(); }, [&](int64_t i) { return resident(i == 0 ? 1 : 7); }, {});
}

TEST_F(StateTest, AnyOffloadGoesOnBitForBit) {
  Rng rng(5);
  for (int i = 0; i < 8; ++i) {
    SCOPED_TRACE(i);
    expect_relay([&] { return resident(); },
                 [&](int64_t step) {
                   OffloadSettings settings{.optimizer = kOptimizer};
                   settings.num_device_blocks = static_cast<int32_t>(rng.below(6));
                   settings.host_workers = static_cast<int32_t>(1 + rng.below(2));
                   settings.piece_bytes = rng.below(2) == 0 ? 0 : 1000;
                   return offload(settings, step == 0 ? 1 : 7);
                 },
                 {.micro_batches = 1 + i % 2});
  }
}

TEST_F(StateTest, ALaggedNormIsKept) {
  const OffloadSettings settings{.optimizer = {.clip = 0.1}, .clip_norm = ClipNorm::kLagged};
  expect_relay([&] { return offload(settings); }, [&](int64_t) { return offload(settings); }, {});
}

TEST_F(StateTest, ExactPoliciesTakeOverFromEachOther) {
  expect_relay(
      [&] { return resident(); },
      [&](int64_t i) { return i % 2 == 0 ? resident() : offload({.optimizer = kOptimizer, .num_device_blocks = 2}); },
      {});
}

// The share that times choose is chosen again; no bit depends on it.
TEST_F(StateTest, AnAutomaticShareIsChosenAgain) {
  const OffloadSettings settings{.optimizer = kOptimizer, .num_device_blocks = kAutoShare, .host_bytes_per_s = 2e7};
  const auto saved = offload(settings), goes_on = offload(settings), reference = resident();
  const Relay relay{.steps = 10};
  for (int64_t i = 0; i < 5; ++i) relay.step(*saved, i);
  PolicyState state;
  saved->save(state);
  goes_on->restore(state, {});
  const std::vector<double> expected = Relay{.steps = 10}.losses(*reference, 0);
  EXPECT_EQ(relay.losses(*goes_on, 5), std::vector(expected.begin() + 5, expected.end()));
  EXPECT_GT(dynamic_cast<Offload&>(*goes_on).num_device_blocks(), 0);
}

// Case "resume counter": p = 0, g = 1, lr 1e-3, no decay; step 59 after 58 moves the whole rate.
TEST_F(StateTest, TheCounterOfUpdatesIsRestored) {
  const optim::ParameterRange ranges[] = {{0, 16, false, false}};
  const optim::ParameterGroups groups = optim::group_parameters(ranges);
  model::ParameterSpec parameter;
  parameter.name = "p";
  parameter.shape = {16};
  parameter.numel = 16;
  const model::BlockSpec spec{.name = "block", .parameters = {parameter}, .numel = 16};
  at::Tensor weights = at::zeros({16}), gradient = at::ones({16});
  optim::AdamWState state = optim::make_adamw_state(groups);
  for (int i = 0; i < 58; ++i) optim::adamw_step(groups, weights, gradient, state, {.learning_rate = 1e-3});
  PolicyState saved;
  save_exact_block({spec, groups, weights.data_ptr<float>(), state.m.data_ptr<float>(), state.v.data_ptr<float>()},
                   state.updates, saved);
  at::Tensor restored = at::zeros({16});
  optim::AdamWState fresh = optim::make_adamw_state(groups);
  restore_exact_block({spec, groups, restored.data_ptr<float>(), fresh.m.data_ptr<float>(), fresh.v.data_ptr<float>()},
                      saved);
  fresh.updates = read_list<int64_t>(saved, "updates/p").front();
  EXPECT_EQ(fresh.updates, 58);
  const float before = restored[0].item<float>();
  optim::adamw_step(groups, restored, gradient, fresh, {.learning_rate = 1e-3});
  EXPECT_NEAR(restored[0].item<float>() - before, -0.00099999999, 5e-9);  // an ulp of 0.058
  optim::adamw_step(groups, weights, gradient, state, {.learning_rate = 1e-3});
  EXPECT_TRUE(at::equal(restored, weights));
}

TEST_F(StateTest, AFrozenParameterHasAMasterAlone) {
  const auto is_frozen = [](std::string_view name) { return name == "model.embed_tokens.weight"; };
  for (const bool is_zenflow : {false, true}) {
    const auto make = [&]() -> std::unique_ptr<Policy> {
      if (is_zenflow) return zenflow({.optimizer = kOptimizer, .is_frozen = is_frozen});
      return offload({.optimizer = kOptimizer, .is_frozen = is_frozen});
    };
    const auto policy = make();
    PolicyState state;
    policy->save(state);
    EXPECT_TRUE(state.find("master/model.embed_tokens.weight"));
    EXPECT_FALSE(state.find("m/model.embed_tokens.weight"));
    EXPECT_TRUE(state.find("m/model.norm.weight"));
    expect_relay(make, [&](int64_t) { return make(); }, {.steps = 5});
  }
}

TEST_F(StateTest, ViewsAreWhatCopiesAre) {
  for (const auto& policy : {resident(), offload({.optimizer = kOptimizer}), zenflow({.optimizer = kOptimizer})}) {
    Relay{}.step(*policy, 0);
    PolicyState copies, views(PolicyState::Hold::kViews);
    policy->save(copies);
    policy->save(views);
    ASSERT_EQ(copies.tensors().size(), views.tensors().size());
    for (size_t i = 0; i < copies.tensors().size(); ++i) {
      EXPECT_EQ(copies.tensors()[i].name, views.tensors()[i].name);
      EXPECT_TRUE(std::ranges::equal(copies.tensors()[i].bytes, views.tensors()[i].bytes)) << views.tensors()[i].name;
    }
  }
}

// What is promised of its size holds, and is all but reached where windows and updates are under way.
TEST_F(StateTest, ASavedStateIsAsLargeAsSaid) {
  for (const auto& policy :
       {resident(), offload({.optimizer = kOptimizer}),
        zenflow({.optimizer = kOptimizer, .topk_ratio = 0.05, .schedule = {.update_interval = 4}})}) {
    int64_t largest = 0;
    for (int64_t i = 0; i < 8; ++i) {
      Relay{}.step(*policy, i);
      PolicyState state;
      state.reserve(policy->saved_bytes());
      policy->save(state);
      int64_t bytes = 0;
      for (const StateTensor& tensor : state.tensors()) bytes += std::ssize(tensor.bytes);
      EXPECT_LE(bytes, policy->saved_bytes());
      largest = std::max(largest, bytes);
    }
    EXPECT_GT(static_cast<double>(largest), 0.8 * static_cast<double>(policy->saved_bytes()));
  }
}

// Copied so slowly that the next steps are there first: they wait before they change a block, and the copy is that of
// the step at which it began.
TEST_F(StateTest, StepsGoOnWhileTheStateIsCopied) {
  const std::vector<std::function<std::unique_ptr<Policy>()>> makers = {
      [&] { return resident(); }, [&] { return offload({.optimizer = kOptimizer, .num_device_blocks = 2}); },
      [&] { return zenflow({.optimizer = kOptimizer, .schedule = {.update_interval = 2, .select_interval = 2}}); },
      [&] {
        return zenflow(
            {.optimizer = kOptimizer, .schedule = {.update_interval = 3}, .window_sum = zenflow::WindowSum::kRunning});
      }};
  for (size_t maker = 0; maker < makers.size(); ++maker) {
    for (int64_t save_after = 1; save_after < 5; ++save_after) {
      SCOPED_TRACE("policy " + std::to_string(maker) + ", saved after " + std::to_string(save_after));
      const auto saved = makers[maker](), expected = makers[maker]();
      const Relay relay{};
      for (int64_t i = 0; i < save_after; ++i) {
        relay.step(*saved, i);
        relay.step(*expected, i);
      }
      expect_saved_while_stepping(*saved, *expected, save_after,
                                  {.before_part = [] { std::this_thread::sleep_for(std::chrono::milliseconds(4)); }});
    }
  }
}

// As when the disk refuses before the first block: no step waits for a copy that nobody makes.
TEST_F(StateTest, ACopyThatIsGivenUpHoldsNothingUp) {
  for (const auto& policy : {resident(), offload({.optimizer = kOptimizer}), zenflow({.optimizer = kOptimizer})}) {
    Relay{}.step(*policy, 0);
    PolicyState state;
    {
      const StateCopy copy = policy->begin_save();
      copy.parts.front()(state);
    }
    Relay{}.step(*policy, 1);
    policy->finish_updates();
    policy->begin_save();
    Relay{}.step(*policy, 2);
  }
}

TEST_F(StateTest, ATensorThatDoesNotFitIsRefusedByName) {
  PolicyState state;
  resident()->save(state);
  const std::string name = "m/model.layers.1.mlp.up_proj.weight";
  // The state, but for this tensor, which has another shape or none.
  const auto refusal = [&](Policy& policy, std::vector<int64_t> shape) {
    PolicyState changed;
    for (const StateTensor& tensor : state.tensors()) {
      if (tensor.name == name) continue;
      if (tensor.dtype == safetensors::DType::kI64) {
        changed.put(tensor.name, tensor.shape, reinterpret_cast<const int64_t*>(tensor.bytes.data()));
      } else {
        changed.put(tensor.name, tensor.shape, reinterpret_cast<const float*>(tensor.bytes.data()));
      }
    }
    if (!shape.empty()) changed.add<float>(name, std::move(shape));
    changed.set_facts(state.facts());
    return thrown<DataError>([&] { policy.restore(changed, {}); });
  };
  for (const auto& policy : {resident(), offload({.optimizer = kOptimizer}), zenflow({.optimizer = kOptimizer})}) {
    EXPECT_THAT(refusal(*policy, {}), HasSubstr(name));
    const std::string wrong = refusal(*policy, {48, 31});
    EXPECT_THAT(wrong, HasSubstr(name));
    EXPECT_THAT(wrong, HasSubstr("[48, 31]"));
    EXPECT_THAT(wrong, HasSubstr("[48, 32]"));
  }
}

// Columns that were not updated equally often: refused, or the largest count where that is accepted.
TEST_F(StateTest, AnExactPolicyCannotKeepColumnsApart) {
  const auto saved = zenflow({.optimizer = kOptimizer, .schedule = {.update_interval = 3}});
  for (int64_t i = 0; i < 5; ++i) Relay{}.step(*saved, i);
  PolicyState state;
  saved->save(state);
  const std::string refusal = thrown<ConfigError>([&] { resident()->restore(state, {}); });
  EXPECT_THAT(refusal, HasSubstr("--resume-changed"));
  EXPECT_THAT(refusal, HasSubstr("between 2 and 5 times"));
  std::string said;
  const auto goes_on = resident();
  goes_on->restore(state, {.accepts_changes = true, .say = [&](const std::string& text) { said = text; }});
  EXPECT_THAT(said, HasSubstr("the largest count is taken"));
  PolicyState again;
  goes_on->save(again);
  EXPECT_EQ(read_list<int64_t>(again, "updates/model.norm.weight").front(), 5);
}

// Within the warm-up all columns are alike, and nothing is lost either way.
TEST_F(StateTest, TheWarmUpIsExactAcrossPolicies) {
  const ZenFlowSettings settings{.optimizer = kOptimizer, .schedule = {.warmup_steps = 6}};
  expect_relay([&] { return resident(); }, [&](int64_t i) { return i % 2 == 0 ? zenflow(settings) : resident(); },
               {.steps = 6});
}

TEST_F(StateTest, ZenFlowGoesOnFromAnExactRun) {
  const auto exact = resident();
  for (int64_t i = 0; i < 4; ++i) Relay{}.step(*exact, i);
  PolicyState state;
  exact->save(state);
  const auto goes_on = zenflow({.optimizer = kOptimizer, .schedule = {.update_interval = 2, .warmup_steps = 3}});
  goes_on->restore(state, {});
  const StepResult expected = Relay{}.step(*exact, 4), result = Relay{}.step(*goes_on, 4);
  EXPECT_EQ(result.loss_sum, expected.loss_sum);
  for (int64_t i = 5; i < 12; ++i) Relay{}.step(*goes_on, i);
  EXPECT_EQ(dynamic_cast<ZenFlow&>(*goes_on).columns()[1].vector_updates, 12);
}

}  // namespace
}  // namespace headrace::policy
