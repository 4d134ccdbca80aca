#include "headrace/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "tests/train/tiny_run.h"

namespace headrace::train {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

using TrainerTest = TinyRun;

TEST_F(TrainerTest, LeavesACompleteRunFolder) {
  const TrainResult result = run(config("run"));
  const fs::path out = folder_ / "run";
  EXPECT_EQ(result.steps, 6);
  EXPECT_GT(result.trained_tokens, 0);
  EXPECT_LT(result.trained_tokens, result.tokens);  // the user's words are not trained
  EXPECT_EQ(result.out, out);
  for (const char* name :
       {"run_config.json", "metrics.jsonl", "log.txt", "config.json", "model.safetensors", "tokenizer.json"}) {
    EXPECT_TRUE(fs::exists(out / name)) << name;
  }
  EXPECT_FALSE(fs::is_empty(out / "tensorboard"));
  const std::vector<Json> metrics = lines(out / "metrics.jsonl");
  ASSERT_EQ(metrics.size(), 7u);  // six steps and one evaluation
  EXPECT_EQ(metrics[5]["step"], 6);
  EXPECT_LT(metrics[5]["loss"], metrics[0]["loss"]);
  EXPECT_EQ(metrics[5]["loss"], result.final_loss);
  EXPECT_EQ(metrics[6]["perplexity"], result.evaluation->perplexity());
  config::TrainConfig resolved;
  config::apply_json(Json::parse(os::read_file(out / "run_config.json")), "run_config.json", resolved);
  EXPECT_EQ(resolved.lr, 1e-2);
}

TEST_F(TrainerTest, SameSeedGivesTheSameBits) {
  run(config("a"));
  run(config("b"));
  EXPECT_EQ(os::read_file(folder_ / "a/model.safetensors"), os::read_file(folder_ / "b/model.safetensors"));
  config::TrainConfig other = config("c");
  other.seed = 1;
  run(other);
  EXPECT_NE(os::read_file(folder_ / "a/model.safetensors"), os::read_file(folder_ / "c/model.safetensors"));
}

TEST_F(TrainerTest, ThreadsChangeNoBit) {
  config::TrainConfig one = config("one");
  one.threads = 1;
  run(one);
  run(config("two"));
  EXPECT_EQ(os::read_file(folder_ / "one/model.safetensors"), os::read_file(folder_ / "two/model.safetensors"));
}

TEST_F(TrainerTest, EvaluationAndRecomputationChangeNoBit) {
  run(config("plain"));
  config::TrainConfig busy = config("busy");
  busy.eval_every = 2;
  busy.recompute = true;
  run(busy);
  EXPECT_EQ(os::read_file(folder_ / "plain/model.safetensors"), os::read_file(folder_ / "busy/model.safetensors"));
  EXPECT_EQ(lines(folder_ / "busy/metrics.jsonl").size(), 9u);
}

TEST_F(TrainerTest, AnInterruptSavesWhatThereIs) {
  int asked = 0;
  const TrainResult result = run(config("run"), [&] { return ++asked > 2; });
  EXPECT_TRUE(result.was_interrupted);
  EXPECT_EQ(result.steps, 2);
  EXPECT_FALSE(result.evaluation.has_value());
  EXPECT_TRUE(fs::exists(result.out / "model.safetensors"));
  EXPECT_THAT(os::read_file(folder_ / "run/log.txt"), HasSubstr("interrupted after step 2 of 6: saved"));
}

TEST_F(TrainerTest, StoppingWhileReadingWritesNothing) {
  std::string lines;
  for (int i = 0; i < 100000; ++i) lines += "{\"text\": \"some words to read\"}\n";
  support::write_file(folder_ / "long.jsonl", lines);
  config::TrainConfig reading = config("run");
  reading.data = {folder_ / "long.jsonl"};
  const TrainResult result = run(reading, [] { return true; });
  EXPECT_TRUE(result.was_interrupted);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainerTest, AFailedStartLeavesTheOldRunAlone) {
  run(config("run"));
  config::TrainConfig again = config("run");
  again.overwrite = true;
  again.data = {folder_ / "missing.jsonl"};
  EXPECT_THROW(run(again), IoError);
  EXPECT_TRUE(fs::exists(folder_ / "run/model.safetensors"));
}

TEST_F(TrainerTest, OverwritingWhatTheRunReadsIsRefused) {
  run(config("run"));
  config::TrainConfig onto_itself = config("run");
  onto_itself.model = folder_ / "run";
  onto_itself.init = "pretrained";
  onto_itself.overwrite = true;
  EXPECT_THROW(run(onto_itself), ConfigError);
  EXPECT_TRUE(fs::exists(folder_ / "run/model.safetensors"));
}

TEST_F(TrainerTest, RefusesToOverwriteUnlessAsked) {
  run(config("run"));
  EXPECT_THROW(run(config("run")), ConfigError);
  config::TrainConfig again = config("run");
  again.overwrite = true;
  EXPECT_EQ(run(again).steps, 6);
  support::write_file(folder_ / "thesis.tex", "");
  config::TrainConfig careless = config("");
  careless.overwrite = true;
  EXPECT_THROW(run(careless), ConfigError);
  EXPECT_TRUE(fs::exists(folder_ / "thesis.tex"));
}

// What others put into a run's folder is not ours to remove.
TEST_F(TrainerTest, OverwritingLeavesOthersFilesAlone) {
  run(config("run"));
  support::write_file(folder_ / "run/thesis.tex", "x");
  support::write_file(folder_ / "run/trace.json", "of the run before");
  config::TrainConfig again = config("run");
  again.overwrite = true;
  again.steps = 1;
  EXPECT_EQ(run(again).steps, 1);
  EXPECT_TRUE(fs::exists(folder_ / "run/thesis.tex"));
  EXPECT_FALSE(fs::exists(folder_ / "run/trace.json"));
  EXPECT_EQ(lines(folder_ / "run/metrics.jsonl").size(), 2u);  // of one step and one evaluation
}

TEST_F(TrainerTest, OffloadingUnderABudgetGivesTheSameModel) {
  config::TrainConfig resident = config("resident");
  resident.threads = 1;
  resident.accumulate = 2;
  const TrainResult expected = run(resident);
  for (const char* overlap : {"none", "exact"}) {
    config::TrainConfig offload = resident;
    offload.out = folder_ / overlap;
    offload.device = "emulated";
    offload.policy = "offload";
    offload.overlap = overlap;
    offload.device_budget = "64MiB";
    offload.trace_steps = 2;
    const TrainResult result = run(offload);
    EXPECT_EQ(result.final_loss, expected.final_loss);
    EXPECT_EQ(result.evaluation->loss(), expected.evaluation->loss());
    EXPECT_EQ(os::read_file(folder_ / overlap / "model.safetensors"),
              os::read_file(folder_ / "resident/model.safetensors"));
    EXPECT_LE(result.policy["device_memory"]["peak"], 64 << 20);
    EXPECT_GT(result.policy["lane_bytes"]["host_update"], 0);
    double idle_s = 0;
    for (const OrderedJson& row : result.policy["stall"]["by_reason"]) idle_s += row["s"].get<double>();
    EXPECT_NEAR(idle_s, result.policy["stall"]["idle_s"].get<double>(), 1e-6);
    const Json trace = Json::parse(os::read_file(folder_ / overlap / "trace.json"));
    EXPECT_GT(trace["traceEvents"].size(), 20u);
  }
}

// Case "budget", of the device; the next one of the host.
TEST_F(TrainerTest, ADeviceBudgetTooSmallIsRefusedBeforeTraining) {
  config::TrainConfig small = config("run");
  small.device = "emulated";
  small.policy = "offload";
  small.device_budget = "100KiB";
  try {
    run(small);
    FAIL() << "trained";
  } catch (const CapacityError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--device-budget is 100 KiB"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainerTest, ABudgetTooSmallIsRefusedBeforeTraining) {
  config::TrainConfig small = config("run");
  small.host_budget = "100KiB";
  try {
    run(small);
    FAIL() << "trained";
  } catch (const CapacityError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--host-budget is 100 KiB"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainerTest, FreezingEverythingIsRefused) {
  config::TrainConfig frozen = config("run");
  frozen.freeze = {"*"};
  EXPECT_THROW(run(frozen), ConfigError);
}

TEST_F(TrainerTest, ConversationsWithoutATemplateNameTheFlag) {
  config::TrainConfig untold = config("run");
  untold.chat_template = "auto";
  try {
    run(untold);
    FAIL() << "trained";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--chat-template"));
  }
}

TEST_F(TrainerTest, BatchArithmeticIsChecked) {
  config::TrainConfig wrong = config("run");
  wrong.global_batch = 256;
  wrong.accumulate = 8;
  try {
    run(wrong);
    FAIL() << "trained";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("64"));
  }
}

}  // namespace
}  // namespace headrace::train
