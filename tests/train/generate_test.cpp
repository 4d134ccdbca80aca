#include "headrace/train/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "headrace/base/errors.h"
#include "tests/support/tiny_model.h"

namespace headrace::train {
namespace {

at::Tensor logits() { return at::log(at::tensor({0.1f, 0.6f, 0.05f, 0.25f})); }

std::map<int64_t, double> shares(const SamplingConfig& config) {
  Rng rng(1);
  std::map<int64_t, double> result;
  for (int i = 0; i < 20000; ++i) result[sample(logits(), config, rng)] += 1.0 / 20000;
  return result;
}

TEST(Sample, GreedyTakesTheLikeliestAndDrawsNothing) {
  Rng rng(1);
  const Rng::State before = rng.state();
  EXPECT_EQ(sample(logits(), {}, rng), 1);
  EXPECT_EQ(rng.state(), before);
  EXPECT_EQ(sample(at::tensor({2.0f, 2.0f}), {}, rng), 0);
}

TEST(Sample, FollowsTheProbabilities) {
  const auto share = shares({.temperature = 1});
  // 20,000 draws: one standard deviation is at most 0.0035.
  EXPECT_NEAR(share.at(0), 0.1, 0.015);
  EXPECT_NEAR(share.at(1), 0.6, 0.015);
  EXPECT_NEAR(share.at(2), 0.05, 0.015);
  EXPECT_NEAR(share.at(3), 0.25, 0.015);
}

TEST(Sample, TemperatureSharpens) {
  // p^2 normalised: 0.36 / (0.01 + 0.36 + 0.0025 + 0.0625).
  EXPECT_NEAR(shares({.temperature = 0.5}).at(1), 0.36 / 0.435, 0.015);
}

TEST(Sample, TopKAndTopPCutTheTail) {
  const auto k = shares({.temperature = 1, .top_k = 2});
  EXPECT_EQ(k.size(), 2u);
  EXPECT_NEAR(k.at(3), 0.25 / 0.85, 0.015);
  EXPECT_EQ(shares({.temperature = 1, .top_p = 0.6}).size(), 1u);
  EXPECT_EQ(shares({.temperature = 1, .top_p = 0.9}).size(), 3u);
}

TEST(Sample, RangesAreChecked) {
  EXPECT_THROW(validate(SamplingConfig{.temperature = -1}), ConfigError);
  EXPECT_THROW(validate(SamplingConfig{.top_k = -1}), ConfigError);
  EXPECT_THROW(validate(SamplingConfig{.top_p = 0}), ConfigError);
  EXPECT_THROW(validate(SamplingConfig{.top_p = 1.5}), ConfigError);
  EXPECT_NO_THROW(validate(SamplingConfig{}));
}

class GenerateTest : public ::testing::Test {
 protected:
  GenerateTest() {
    for (const at::Tensor& flat : support::random_weights(model_, 3)) blocks_.push_back({flat, {}});
  }
  const model::Model model_ = support::tiny_model();
  std::vector<model::BlockBuffers> blocks_;
  const std::vector<int64_t> prompt_{1, 5, 9};
};

TEST_F(GenerateTest, GreedyEqualsTheArgmaxOfTheFullForward) {
  const std::vector<int64_t> made = generate(model_, blocks_, prompt_, {.max_new_tokens = 8});
  ASSERT_EQ(made.size(), 8u);
  std::vector<int64_t> ids = prompt_;
  for (int64_t id : made) {
    const std::vector<std::vector<int64_t>> documents{ids};
    const model::Batch batch = model::pack(documents, documents);
    const at::Tensor x = model::forward_all(model_, blocks_, batch);
    const at::Tensor last = model::logits(model_, blocks_.back(), blocks_.front(), x)[batch.num_tokens() - 1];
    EXPECT_EQ(id, last.argmax().item<int64_t>());
    ids.push_back(id);
  }
}

TEST_F(GenerateTest, StopsAtAStopIdAndWhenTold) {
  const std::vector<int64_t> free = generate(model_, blocks_, prompt_, {.max_new_tokens = 4});
  EXPECT_TRUE(generate(model_, blocks_, prompt_, {.max_new_tokens = 4, .stop_ids = {free[0]}}).empty());
  EXPECT_EQ(generate(model_, blocks_, prompt_, {.max_new_tokens = 4}, [](int64_t) { return false; }).size(), 1u);
}

TEST_F(GenerateTest, SeedsFixTheSample) {
  const GenerationConfig config{.sampling = {.temperature = 1.5}, .max_new_tokens = 20, .seed = 5};
  EXPECT_EQ(generate(model_, blocks_, prompt_, config), generate(model_, blocks_, prompt_, config));
  GenerationConfig other = config;
  other.seed = 6;
  EXPECT_NE(generate(model_, blocks_, prompt_, config), generate(model_, blocks_, prompt_, other));
}

TEST_F(GenerateTest, RefusesAnEmptyPrompt) {
  EXPECT_THROW(generate(model_, blocks_, {}, {}), ConfigError);
  EXPECT_THROW(generate(model_, blocks_, prompt_, {.max_new_tokens = 0}), ConfigError);
}

}  // namespace
}  // namespace headrace::train
