// --on-nan skip over a whole run. One row of the embedding is not a number: a record with its byte makes a step that is
// not finite, all others never notice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/train/trainer.h"
#include "tests/fault/record.h"
#include "tests/train/tiny_run.h"

namespace headrace::train {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int64_t kBadByte = 'Z', kWidth = 32;

class SkipTest : public TinyRun {
 protected:
  SkipTest() {
    Json shape = Json::parse(os::read_file(folder_ / "model/config.json"));
    shape["tie_word_embeddings"] = false;
    support::write_file(folder_ / "model/config.json", shape.dump());
  }

  // The weights that a run of one step leaves, but for the row.
  void make_bad_row() {
    config::TrainConfig one = config("start");
    one.steps = 1;
    one.lr = 0;
    run(one);
    std::string file = os::read_file(folder_ / "start/model.safetensors");
    uint64_t header_size = 0;
    std::memcpy(&header_size, file.data(), sizeof header_size);
    const Json header = Json::parse(file.substr(8, header_size));
    const auto offset = header.at("model.embed_tokens.weight").at("data_offsets").at(0).get<size_t>();
    const float bad = std::numeric_limits<float>::quiet_NaN();
    for (int64_t i = 0; i < kWidth; ++i) {
      std::memcpy(file.data() + 8 + header_size + offset + static_cast<size_t>(kBadByte * kWidth + i) * sizeof bad,
                  &bad, sizeof bad);
    }
    support::write_file(folder_ / "start/model.safetensors", file);
  }

  config::TrainConfig skipping(const std::string& out, const std::string& data) {
    config::TrainConfig skipping = config(out);
    skipping.model = folder_ / "start";
    skipping.init = "pretrained";
    skipping.data = {folder_ / data};
    skipping.held_out = 0;
    skipping.batch = 1;
    skipping.steps = 0;
    skipping.on_nan = "skip";
    return skipping;
  }

  void write_records(const std::string& name, const std::vector<std::string>& texts) {
    std::string lines;
    for (const std::string& text : texts) lines += Json{{"text", text}}.dump() + "\n";
    support::write_file(folder_ / name, lines);
  }
};

TEST_F(SkipTest, ASkippedStepIsReported) {
  make_bad_row();
  write_records("sound.jsonl", {"one and two", "three and four", "five and six"});
  write_records("bad.jsonl", {"one and two", "three and four", "Zero", "five and six", "aZ"});
  const TrainResult sound = run(skipping("sound", "sound.jsonl"));
  for (const std::string policy : {"resident", "offload"}) {
    SCOPED_TRACE(policy);
    config::TrainConfig config = skipping("bad_" + policy, "bad.jsonl");
    config.policy = policy;
    config.device = policy == "offload" ? "emulated" : "cpu";
    const TrainResult bad = run(config);
    EXPECT_EQ(bad.steps, 5);
    EXPECT_EQ(bad.skipped_steps, 2);
    EXPECT_EQ(bad.to_json().at("skipped_steps"), 2);
    EXPECT_EQ(bad.trained_tokens, sound.trained_tokens);
    EXPECT_TRUE(std::isfinite(bad.final_loss));
    int64_t said = 0;
    for (const Json& metrics : lines(bad.out / "metrics.jsonl")) said += metrics.contains("skipped") ? 1 : 0;
    EXPECT_EQ(said, 2);
    EXPECT_THAT(os::read_file(bad.out / "log.txt"), HasSubstr("skipped, nothing was updated: loss nan; gradients of "));
    for (int64_t i = 0; i < bad.skipped_steps; ++i) {
      fault::record("a step that is not finite, --on-nan skip", "a run while it trains: " + policy, "",
                    {"nothing is updated, the step is reported and counted", "the step"});
    }
  }
  EXPECT_EQ(os::read_file(folder_ / "bad_resident/model.safetensors"),
            os::read_file(folder_ / "bad_offload/model.safetensors"));
}

TEST_F(SkipTest, ByDefaultTheRunStops) {
  make_bad_row();
  write_records("bad.jsonl", {"Zero"});
  config::TrainConfig stopping = skipping("run", "bad.jsonl");
  stopping.on_nan = "stop";
  EXPECT_THROW(run(stopping), RunError);
  fault::record(
      "a step that is not finite, --on-nan stop", "a run while it trains", "",
      {"the run ends before anything is updated; what was not finite is named", "the steps since the last checkpoint"});
}

TEST_F(SkipTest, ARunThatSkipsForEverEnds) {
  make_bad_row();
  write_records("bad.jsonl", std::vector<std::string>(40, "Z"));
  try {
    run(skipping("run", "bad.jsonl"));
    FAIL() << "it ran on";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("25 steps in a row were not finite"));
  }
  EXPECT_EQ(lines(folder_ / "run/metrics.jsonl").size(), 25u);
  fault::record("25 steps in a row that are not finite, --on-nan skip", "a run while it trains", "",
                {"the run ends; what was not finite is named", "the steps since the last checkpoint"});
}

TEST_F(SkipTest, RelaxedClippingCannotSkip) {
  config::TrainConfig relaxed = config("run");
  relaxed.device = "emulated";
  relaxed.policy = "offload";
  relaxed.clip_scope = "block";
  relaxed.on_nan = "skip";
  EXPECT_THROW(run(relaxed), ConfigError);
}

}  // namespace
}  // namespace headrace::train
