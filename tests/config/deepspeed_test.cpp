#include "headrace/config/deepspeed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace::config {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(DeepSpeed, HonoursWhatItKnows) {
  TrainConfig config;
  const auto notes = apply_deepspeed(Json::parse(R"({
        "train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 16,
        "gradient_clipping": 0.5, "steps_per_print": 10, "bf16": {"enabled": true},
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.8, 0.99], "eps": 1e-7, "weight_decay": 0.1}},
        "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 20, "total_num_steps": 200}}})"),
                                     "ds.json", config);
  EXPECT_EQ(config.global_batch, 64);
  EXPECT_EQ(config.batch, 4);
  EXPECT_EQ(config.accumulate, 16);
  EXPECT_EQ(config.clip, 0.5);
  EXPECT_EQ(config.lr, 3e-5);
  EXPECT_EQ(config.beta1, 0.8);
  EXPECT_EQ(config.beta2, 0.99);
  EXPECT_EQ(config.epsilon, 1e-7);
  EXPECT_EQ(config.weight_decay, 0.1);
  EXPECT_EQ(config.schedule, "cosine");
  EXPECT_EQ(config.warmup, 20);
  EXPECT_EQ(config.steps, 200);
  EXPECT_THAT(notes, Contains(HasSubstr("'bf16' is enabled, but the CPU device computes in fp32")));
  EXPECT_THAT(notes, Contains(HasSubstr("'steps_per_print' is not used here")));
}

TEST(DeepSpeed, AutoLeavesOursAndSaysSo) {
  TrainConfig config;
  config.lr = 7e-5;
  const auto notes =
      apply_deepspeed(Json::parse(R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto"}}})"), "ds.json", config);
  EXPECT_EQ(config.lr, 7e-5);
  EXPECT_THAT(notes, Contains(HasSubstr("'optimizer.params.lr' is auto")));
}

TEST(DeepSpeed, ClipsOnlyWhenAsked) {
  TrainConfig config;
  apply_deepspeed(Json::object(), "ds.json", config);
  EXPECT_EQ(config.clip, 0);
}

TEST(DeepSpeed, MicroBatchFollowsFromTheOthers) {
  TrainConfig config;
  apply_deepspeed(Json::parse(R"({"train_batch_size": 64, "gradient_accumulation_steps": 16})"), "ds.json", config);
  EXPECT_EQ(config.batch, 4);
}

TEST(DeepSpeed, AZenFlowSectionWorksAsItIs) {
  TrainConfig config;
  const auto notes = apply_deepspeed(
      Json::parse(R"({"zero_optimization": {"stage": 2, "zenflow": {"topk_ratio": 0.05, "select_strategy": "auto",
        "select_interval": "auto", "update_interval": 4, "full_warm_up_rounds": 3, "overlap_step": true,
        "auto_ratio": 0.99}}})"),
      "ds.json", config);
  EXPECT_EQ(config.policy, "zenflow");
  EXPECT_EQ(config.topk_ratio, 0.05);
  EXPECT_EQ(config.update_interval, "4");
  EXPECT_EQ(config.select_interval, TrainConfig{}.select_interval);
  EXPECT_EQ(config.warmup_steps, 3);
  EXPECT_EQ(config.overlap, "exact");
  EXPECT_THAT(notes, Contains(HasSubstr("auto_ratio' is not used")));
}

TEST(DeepSpeed, RefusesWhatWouldChangeTheResult) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"optimizer": {"type": "Lamb"}})", "'optimizer.type' is \"Lamb\": only AdamW"},
      {R"({"scheduler": {"type": "OneCycle"}})", "'scheduler.type' is \"OneCycle\""},
      {R"({"progressive_layer_drop": {"enabled": true}})", "'progressive_layer_drop'"},
      {R"({"zero_optimization": {"stage": 2, "zenflow": {"topk": 0.1}}})", "zenflow.topk"},
      {R"({"zero_optimization": {"zenflow": {"update_interval": 2.5}}})", "zenflow.update_interval"},
      {R"({"zero_optimization": {"zenflow": {"select_strategy": "epoch"}}})", "zenflow.select_strategy"},
      {R"({"gradient_clipping": "high"})", "gradient_clipping"},
      {R"({"optimizer": {"type": "AdamW", "params": {"momentum": 0.9}}})", "'optimizer.params.momentum'"},
      {R"({"train_batch_size": 10, "gradient_accumulation_steps": 3})", "no multiple"},
      {R"([1])", "no JSON object"},
  };
  for (const auto& [text, expected] : wrong) {
    TrainConfig config;
    try {
      apply_deepspeed(Json::parse(text), "ds.json", config);
      FAIL() << "accepted " << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(std::string(error.what()), HasSubstr(expected));
    }
  }
}

}  // namespace
}  // namespace headrace::config
