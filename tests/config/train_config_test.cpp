#include "headrace/config/train_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "headrace/base/errors.h"

namespace headrace::config {
namespace {

using ::testing::HasSubstr;

TrainConfig usable() {
  TrainConfig config;
  config.model = "m";
  config.data = {"d.jsonl"};
  config.out = "o";
  return config;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TrainConfig, JsonRoundTripKeepsEveryField) {
  TrainConfig config = usable();
  config.lr = 3e-4;
  config.eval_data = {"a", "b"};
  config.recompute = true;
  TrainConfig copy;
  apply_json(Json::parse(to_json(config).dump()), "test", copy);
  EXPECT_EQ(to_json(copy), to_json(config));
}

TEST(TrainConfig, KeysAreUniqueAndHaveHelp) {
  std::set<std::string> keys;
  TrainConfig config;
  config.visit_fields([&](const FieldInfo& info, auto&) {
    EXPECT_TRUE(keys.insert(std::string(info.key)).second) << info.key;
    EXPECT_FALSE(info.help.empty()) << info.key;
  });
  EXPECT_GE(keys.size(), 35u);
}

TEST(TrainConfig, UnknownKeyNamesTheNearest) {
  TrainConfig config;
  EXPECT_THAT(error_of([&] {
                apply_json(Json{{"max_lenght", 5}}, "run.json", config);
              }),
              HasSubstr("run.json: unknown key 'max_lenght'. Did you mean 'max_length'?"));
}

TEST(TrainConfig, WrongTypesAndWordsAreNamed) {
  TrainConfig config;
  EXPECT_THAT(error_of([&] {
                apply_json(Json{{"steps", "many"}}, "f", config);
              }),
              HasSubstr("'steps' is \"many\", expected a whole number"));
  EXPECT_THAT(error_of([&] { apply_json(Json{{"steps", 1.5}}, "f", config); }), HasSubstr("expected a whole number"));
  EXPECT_THAT(error_of([&] { apply_json(Json{{"recompute", 1}}, "f", config); }), HasSubstr("true or false"));
  EXPECT_THAT(error_of([&] {
                apply_json(Json{{"schedule", "sawtooth"}}, "f", config);
              }),
              HasSubstr("'schedule' is 'sawtooth', expected one of: constant, linear, cosine, wsd."));
}

TEST(TrainConfig, ValidatesRanges) {
  EXPECT_NO_THROW(validate(usable()));
  const std::vector<std::pair<std::string, std::function<void(TrainConfig&)>>> wrong = {
      {"'batch' is 0, but it must be at least 1", [](TrainConfig& c) { c.batch = 0; }},
      {"'lr' is -0.1", [](TrainConfig& c) { c.lr = -0.1; }},
      {"'beta2' is 1.0, but it must lie in [0.0, 1.0)", [](TrainConfig& c) { c.beta2 = 1; }},
      {"'warmup' is 11, but there are only 10 steps",
       [](TrainConfig& c) {
         c.steps = 10;
         c.warmup = 11;
       }},
      {"'held_out' is 0.1, but eval_data is given too",
       [](TrainConfig& c) {
         c.held_out = 0.1;
         c.eval_data = {"e"};
       }},
      {"cannot read '8 gigs'", [](TrainConfig& c) { c.host_budget = "8 gigs"; }},
      {"'policy' is offload, but device cpu has only one memory", [](TrainConfig& c) { c.policy = "offload"; }},
      {"'clip_scope' is block, but only policy offload", [](TrainConfig& c) { c.clip_scope = "block"; }},
      {"'clip_norm' is lagged, but clip_scope is block too",
       [](TrainConfig& c) {
         c.policy = "offload";
         c.device = "emulated";
         c.clip_scope = "block";
         c.clip_norm = "lagged";
       }},
      {"'device_optimizer_share' is 2.0, but it must lie in [0.0, 1.0]",
       [](TrainConfig& c) { c.device_optimizer_share = "2"; }},
      {"'device_optimizer_share' is half", [](TrainConfig& c) { c.device_optimizer_share = "half"; }},
      {"'device_optimizer_share' is 0.5, but without overlap",
       [](TrainConfig& c) {
         c.overlap = "none";
         c.device_optimizer_share = "0.5";
       }},
      {"'lane_deadline' is 0s", [](TrainConfig& c) { c.lane_deadline = "0s"; }},
      {"cannot read 'much'", [](TrainConfig& c) { c.device_budget = "much"; }},
      {"'topk_ratio' is 0.0, but it must lie in (0, 1]", [](TrainConfig& c) { c.topk_ratio = 0; }},
      {"'update_interval' is often, but it must be a number", [](TrainConfig& c) { c.update_interval = "often"; }},
      {"'update_interval' is 0, but", [](TrainConfig& c) { c.update_interval = "0"; }},
      {"'update_interval' is 20, but there are only 10 steps",
       [](TrainConfig& c) {
         c.steps = 10;
         c.update_interval = "20";
       }},
      {"'warmup_steps' is 0, but it must be at least 1", [](TrainConfig& c) { c.warmup_steps = 0; }},
      {"'select_interval' is 0", [](TrainConfig& c) { c.select_interval = 0; }},
      {"'policy' is zenflow, but device cpu has only one memory", [](TrainConfig& c) { c.policy = "zenflow"; }},
      {"'device_optimizer_share' is auto, but policy zenflow takes a number",
       [](TrainConfig& c) {
         c.policy = "zenflow";
         c.device = "emulated";
         c.device_optimizer_share = "auto";
       }},
      {"'save_every' is -1, but it must be at least 0", [](TrainConfig& c) { c.save_every = "-1"; }},
      {"'save_every' is 0s, but a time must be above 0", [](TrainConfig& c) { c.save_every = "0s"; }},
      {"cannot read 'often'", [](TrainConfig& c) { c.save_every = "often"; }},
      {"'keep_last' is 0, but it must be at least 1", [](TrainConfig& c) { c.keep_last = 0; }},
      {"'resume' is empty", [](TrainConfig& c) { c.resume.clear(); }},
      {"'model' is empty", [](TrainConfig& c) { c.model.clear(); }},
      {"'clip' is null", [](TrainConfig& c) { c.clip = std::nan(""); }},
  };
  for (const auto& [text, spoil] : wrong) {
    TrainConfig config = usable();
    spoil(config);
    EXPECT_THAT(error_of([&] { validate(config); }), HasSubstr(text));
  }
}

TEST(TrainConfigTest, SaveEveryIsStepsOrTime) {
  EXPECT_EQ(parse_save_every("25").steps, 25);
  EXPECT_EQ(parse_save_every("25").seconds, 0);
  EXPECT_EQ(parse_save_every("10min").seconds, 600);
  EXPECT_EQ(parse_save_every("30s").steps, 0);
  EXPECT_EQ(parse_save_every("0").steps, 0);
}

}  // namespace
}  // namespace headrace::config
