// A run that ends and goes on leaves what one that never ended leaves.
#include <gmock/gmock.h>

#include <algorithm>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/store/list.h"
#include "headrace/store/reader.h"
#include "headrace/store/run_lock.h"
#include "headrace/train/checkpointing_resume.h"
#include "headrace/train/load.h"
#include "tests/support/thrown.h"
#include "tests/train/tiny_run.h"

namespace headrace::train {
namespace {

using support::thrown;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ResumeTest : public TinyRun {
 protected:
  config::TrainConfig of_policy(const std::string& out, const std::string& policy) const {
    config::TrainConfig settings = config(out);
    settings.policy = policy;
    settings.threads = 1;
    settings.accumulate = 2;
    settings.batch = 2;
    settings.steps = 12;
    settings.eval_every = 4;
    settings.tensorboard = false;
    if (policy != "resident") settings.device = "emulated";
    settings.update_interval = "3";
    settings.select_interval = 3;
    return settings;
  }
  // Until so many steps are done; then asked to stop.
  TrainResult run_until(const config::TrainConfig& settings, int64_t step) {
    return run(settings, [&, out = settings.out] {
      int64_t done = 0;
      if (fs::exists(fs::path(out) / "metrics.jsonl")) {
        for (const Json& line : lines(fs::path(out) / "metrics.jsonl"))
          done = std::max(done, line["step"].get<int64_t>());
      }
      return done >= step;
    });
  }
  // What a run says of its steps and evaluations, without what the clock says.
  std::vector<Json> numbers(const std::string& out) const {
    std::vector<Json> result;
    for (const Json& line : lines(folder_ / out / "metrics.jsonl")) {
      Json kept;
      for (const char* key :
           {"step", "epoch", "loss", "lr", "gradient_norm", "clip_factor", "tokens", "trained_tokens", "perplexity"}) {
        if (line.contains(key)) kept[key] = line[key];
      }
      result.push_back(kept);
    }
    return result;
  }
  void expect_same(const std::string& out, const std::string& expected) const {
    EXPECT_EQ(numbers(out), numbers(expected));
    EXPECT_EQ(os::read_file(folder_ / out / "model.safetensors"),
              os::read_file(folder_ / expected / "model.safetensors"));
  }
};

TEST_F(ResumeTest, GoesOnBitForBit) {
  for (const char* policy : {"resident", "offload", "zenflow"}) {
    SCOPED_TRACE(policy);
    const std::string whole = std::string(policy) + "-whole";
    const TrainResult expected = run(of_policy(whole, policy));
    for (const int64_t stop : {1, 5, 8}) {
      config::TrainConfig settings = of_policy(policy + std::to_string(stop), policy);
      settings.resume = "auto";
      EXPECT_EQ(run_until(settings, stop).steps, stop);
      const TrainResult result = run(settings);
      EXPECT_EQ(result.resumed_step, stop);
      EXPECT_EQ(result.steps, 12);
      EXPECT_EQ(result.final_loss, expected.final_loss);
      EXPECT_EQ(result.tokens, expected.tokens);
      expect_same(policy + std::to_string(stop), whole);
    }
  }
}

// Case "loss after checkpoint", and that saving changes nothing.
TEST_F(ResumeTest, SavingChangesNoBit) {
  for (const char* policy : {"resident", "offload", "zenflow"}) {
    SCOPED_TRACE(policy);
    run(of_policy(std::string(policy) + "-plain", policy));
    config::TrainConfig saving = of_policy(std::string(policy) + "-saving", policy);
    saving.save_every = "1";
    run(saving);
    expect_same(std::string(policy) + "-saving", std::string(policy) + "-plain");
    EXPECT_EQ(store::list_checkpoints(saving.out).size(), 2u);
    EXPECT_EQ(store::read_latest(saving.out), "step-00000012");
  }
}

TEST_F(ResumeTest, AFinishedRunIsLeftAsItIsAndALongerOneGoesOn) {
  config::TrainConfig settings = of_policy("run", "zenflow");
  settings.schedule = "constant";
  settings.save_every = "5";
  config::TrainConfig longer = settings;
  longer.steps = 18;
  longer.out = folder_ / "whole";
  run(longer);
  run(settings);
  settings.resume = "auto";
  EXPECT_EQ(run(settings).steps, 12);
  settings.steps = 18;
  EXPECT_EQ(run(settings).resumed_step, 12);
  EXPECT_EQ(os::read_file(folder_ / "run/model.safetensors"), os::read_file(folder_ / "whole/model.safetensors"));
}

TEST_F(ResumeTest, AnotherPolicyGoesOn) {
  run(of_policy("whole", "resident"));
  config::TrainConfig settings = of_policy("run", "resident");
  settings.resume = "auto";
  run_until(settings, 3);
  config::TrainConfig offload = of_policy("run", "offload");
  offload.resume = "auto";
  offload.host_workers = 2;
  offload.device_optimizer_share = "0.3";
  run_until(offload, 7);
  settings.threads = 2;
  EXPECT_EQ(run(settings).resumed_step, 7);
  EXPECT_EQ(os::read_file(folder_ / "run/model.safetensors"), os::read_file(folder_ / "whole/model.safetensors"));
}

TEST_F(ResumeTest, ChangedSettingsAreListedAndRefused) {
  config::TrainConfig settings = of_policy("run", "resident");
  settings.resume = "auto";
  run_until(settings, 2);
  config::TrainConfig changed = settings;
  changed.lr = 2e-2;
  changed.batch = 3;
  const std::string refusal = thrown<ConfigError>([&] { run(changed); });
  EXPECT_THAT(refusal, HasSubstr("lr is 0.02, was 0.01"));
  EXPECT_THAT(refusal, HasSubstr("batch is 3, was 2"));
  changed.resume_changed = true;
  EXPECT_EQ(run(changed).resumed_step, 2);
  EXPECT_THAT(os::read_file(folder_ / "run/log.txt"), HasSubstr("changed settings: batch is 3, was 2"));
}

TEST_F(ResumeTest, AGpuRoundsInOtherPlaces) {
  config::TrainConfig settings = of_policy("run", "resident");
  settings.resume = "auto";
  run_until(settings, 2);
  settings.device = "cuda";
  EXPECT_THAT(thrown<ConfigError>([&] { run(settings); }), HasSubstr("device is \"cuda\", was \"cpu\""));
}

TEST_F(ResumeTest, ZenFlowIsNoExactPolicy) {
  config::TrainConfig settings = of_policy("run", "zenflow");
  settings.resume = "auto";
  run_until(settings, 5);
  config::TrainConfig exact = of_policy("run", "resident");
  exact.resume = "auto";
  EXPECT_THAT(thrown<ConfigError>([&] { run(exact); }), HasSubstr("policy is \"resident\", was \"zenflow\""));
  exact.resume_changed = true;
  EXPECT_EQ(run(exact).resumed_step, 5);
  EXPECT_THAT(os::read_file(folder_ / "run/log.txt"), HasSubstr("the largest count is taken"));
}

TEST_F(ResumeTest, OtherDataIsRefused) {
  config::TrainConfig settings = of_policy("run", "resident");
  settings.resume = "auto";
  run_until(settings, 2);
  support::write_file(folder_ / "other.jsonl", "{\"text\": \"some other words\"}\n{\"text\": \"and more\"}\n");
  settings.data = {folder_ / "other.jsonl"};
  settings.held_out = 0;
  settings.resume_changed = true;
  EXPECT_THAT(thrown<DataError>([&] { run(settings); }), HasSubstr("the training data changed"));
}

// From a run into another folder: the run stays as it is.
TEST_F(ResumeTest, ANamedCheckpointBeginsAnotherRun) {
  run(of_policy("whole", "offload"));
  config::TrainConfig settings = of_policy("run", "offload");
  settings.save_every = "4";
  settings.keep_last = 3;
  run(settings);
  config::TrainConfig branch = of_policy("branch", "offload");
  branch.resume = folder_ / "run/checkpoints/step-00000004";
  EXPECT_EQ(run(branch).resumed_step, 4);
  EXPECT_EQ(os::read_file(folder_ / "branch/model.safetensors"), os::read_file(folder_ / "whole/model.safetensors"));
  branch.out = folder_ / "run";
  EXPECT_THAT(thrown<ConfigError>([&] { run(branch); }), HasSubstr("is not the newest checkpoint"));
  branch.resume = folder_ / "nothing";
  EXPECT_THAT(thrown<ConfigError>([&] { run(branch); }), HasSubstr("holds no checkpoint"));
}

TEST_F(ResumeTest, ADamagedCheckpointIsSaidAndLeftOut) {
  run(of_policy("whole", "resident"));
  config::TrainConfig settings = of_policy("run", "resident");
  settings.save_every = "1";
  settings.resume = "auto";
  run_until(settings, 6);
  const fs::path newest = store::list_checkpoints(settings.out).front().folder / "state.json";
  std::string text = os::read_file(newest);
  text[text.size() / 2] ^= 1;
  support::write_file(newest, text);
  EXPECT_EQ(run(settings).resumed_step, 5);
  EXPECT_THAT(os::read_file(folder_ / "run/log.txt"), HasSubstr("is damaged and was left out"));
  expect_same("run", "whole");
}

TEST_F(ResumeTest, WhereNoneIsWholeNothingIsBegunAnew) {
  config::TrainConfig settings = of_policy("run", "resident");
  settings.resume = "auto";
  run_until(settings, 2);
  support::write_file(store::list_checkpoints(settings.out).front().folder / "manifest.json", "{}");
  EXPECT_THAT(thrown<DataError>([&] { run(settings); }), HasSubstr("none of the 1 checkpoints"));
}

// Nothing was saved and no model left: auto begins anew. A run that left a model is not taken for such a beginning.
TEST_F(ResumeTest, AutoBeginsWhereThereIsNothingToGoOnFrom) {
  config::TrainConfig settings = of_policy("run", "resident");
  run(settings);
  settings.resume = "auto";
  EXPECT_THAT(thrown<ConfigError>([&] { run(settings); }), HasSubstr("already holds a run"));
  fs::remove(folder_ / "run/config.json");
  fs::remove(folder_ / "run/model.safetensors");
  fs::remove(folder_ / "run/tokenizer.json");
  EXPECT_EQ(run(settings).resumed_step, std::nullopt);
}

TEST_F(ResumeTest, ASecondRunInTheFolderIsRefused) {
  config::TrainConfig settings = of_policy("run", "resident");
  settings.save_every = "1";
  run_until(settings, 2);
  const store::RunLock other(settings.out);
  settings.resume = "auto";
  EXPECT_THAT(thrown<ConfigError>([&] { run(settings); }), HasSubstr("is in use by process"));
  settings.overwrite = true;
  EXPECT_THAT(thrown<ConfigError>([&] { run(settings); }), HasSubstr("is in use by process"));
}

TEST_F(ResumeTest, SavesWhenAsked) {
  config::TrainConfig settings = of_policy("run", "resident");
  int64_t asked = 0;
  train(settings, {progress_, {}, [&] { return ++asked == 3; }, "test"});
  ASSERT_EQ(store::list_checkpoints(settings.out).size(), 1u);
  EXPECT_EQ(store::list_checkpoints(settings.out).front().step, 3);
}

// A checkpoint that cannot be written ends the run, with the model as it is kept.
TEST_F(ResumeTest, AFailedWriteEndsTheRunWithTheModelKept) {
  config::TrainConfig settings = of_policy("run", "resident");
  settings.save_every = "2";
  const auto put_a_file_in_the_way = [&] {
    if (fs::exists(folder_ / "run/metrics.jsonl")) support::write_file(folder_ / "run/checkpoints", "no folder");
    return false;
  };
  EXPECT_THAT(thrown<IoError>([&] {
                train(settings, {progress_, put_a_file_in_the_way, {}, "test"});
              }),
              HasSubstr("checkpoints"));
  EXPECT_TRUE(fs::exists(folder_ / "run/model.safetensors"));
  EXPECT_LT(numbers("run").back()["step"], 12);
}

TEST_F(ResumeTest, WithoutRoomForACopyTrainingWaitsAndNoBitChanges) {
  run(of_policy("whole", "resident"));
  config::TrainConfig settings = of_policy("run", "resident");
  settings.save_every = "3";
  settings.host_budget = "48MiB";  // less than the process has already: a copy would go beyond
  run(settings);
  EXPECT_THAT(os::read_file(folder_ / "run/log.txt"), HasSubstr("training waits while it is saved"));
  expect_same("run", "whole");
  EXPECT_EQ(store::read_latest(settings.out), "step-00000012");
}

TEST_F(ResumeTest, MastersOfACheckpointAreTheWeights) {
  config::TrainConfig settings = of_policy("run", "offload");
  settings.save_every = "12";
  settings.export_dtype = "fp32";
  run(settings);
  const auto found = find_checkpoint(settings.out, [](const std::string&) {});
  ASSERT_TRUE(found);
  const model::Model model(config::ModelShape::load(settings.model));
  const std::vector<at::Tensor> masters = read_masters(store::CheckpointReader::open(*found), model);
  const LoadedModel trained = load_pretrained(settings.out);
  for (size_t i = 0; i < masters.size(); ++i) EXPECT_TRUE(at::equal(masters[i], trained.weights[i])) << i;
}

TEST(ChangedSettingsTest, NamesWhatChangesTheNumbers) {
  config::TrainConfig config;
  const Json saved = config::to_json(config);
  EXPECT_TRUE(changed_settings(config, saved).empty());
  config.policy = "offload";
  config.device = "emulated";
  config.topk_ratio = 0.3;
  config.threads = 7;
  config.out = "elsewhere";
  config.epochs = 2;
  EXPECT_TRUE(changed_settings(config, saved).empty());
  config.beta2 = 0.5;
  EXPECT_EQ(changed_settings(config, saved), std::vector<std::string>{"beta2 is 0.5, was 0.999"});
  config.policy = "zenflow";
  EXPECT_EQ(changed_settings(config, saved).size(), 3u);  // the policy and its share besides
}

}  // namespace
}  // namespace headrace::train
