#include "headrace/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "headrace/base/rng.h"
#include "headrace/data/evaluation.h"
#include "headrace/data/split.h"
#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool operator==(const MicroBatch& a, const MicroBatch& b) {
  return a.ids == b.ids && a.targets == b.targets && a.positions == b.positions &&
         a.document_starts == b.document_starts && a.sample_indices == b.sample_indices &&
         a.trained_tokens == b.trained_tokens && a.padding_tokens == b.padding_tokens;
}

void expect_same(const std::optional<StepBatch>& a, const std::optional<StepBatch>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a) return;
  EXPECT_EQ(a->step, b->step);
  EXPECT_EQ(a->epoch, b->epoch);
  EXPECT_EQ(a->trained_tokens, b->trained_tokens);
  EXPECT_EQ(a->tokens, b->tokens);
  ASSERT_EQ(a->micro_batches.size(), b->micro_batches.size());
  for (size_t i = 0; i < a->micro_batches.size(); ++i) EXPECT_TRUE(a->micro_batches[i] == b->micro_batches[i]);
}

std::vector<StepBatch> drain(Loader& loader) {
  std::vector<StepBatch> steps;
  while (auto step = loader.next()) steps.push_back(std::move(*step));
  return steps;
}

LoaderConfig config_of(int64_t batch, int64_t accumulate, double max_epochs) {
  LoaderConfig config;
  config.batch = batch;
  config.accumulate = accumulate;
  config.max_epochs = max_epochs;
  return config;
}

TEST(Loader, StepsOfMicroBatchesAndAShortLastOne) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(11, 5), false);
  Loader loader(corpus, all_of(*corpus), config_of(2, 2, 2));
  EXPECT_EQ(loader.steps_in_epoch(0), 3);
  EXPECT_EQ(loader.total_steps(), 6);
  const auto steps = drain(loader);
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0].micro_batches.size(), 2u);
  EXPECT_EQ(steps[0].micro_batches[0].document_starts.size(), 3u);
  EXPECT_EQ(steps[0].trained_tokens, 16);
  EXPECT_EQ(steps[0].tokens, 20);
  EXPECT_EQ(steps[2].micro_batches.size(), 2u);
  EXPECT_EQ(steps[2].micro_batches[1].document_starts.size(), 2u) << "11 = 4 + 4 + 2 + 1";
  EXPECT_DOUBLE_EQ(steps[2].epoch, 1);
  EXPECT_DOUBLE_EQ(steps[3].epoch, 1 + 4.0 / 11);
  EXPECT_EQ(steps[5].step, 5);
  EXPECT_FALSE(loader.next()) << "the end stays the end";
}

TEST(Loader, EveryDocumentOnceAnEpoch) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(23, 5), false);
  Loader loader(corpus, all_of(*corpus), config_of(3, 2, 3));
  std::vector<int> seen(23);
  for (const StepBatch& step : drain(loader)) {
    for (const MicroBatch& batch : step.micro_batches) {
      for (const int64_t sample : batch.sample_indices) ++seen[static_cast<size_t>(sample)];
    }
  }
  EXPECT_THAT(seen, testing::Each(3));
}

TEST(Loader, LimitsOfStepsAndEpochs) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(10, 5), false);
  const auto count = [&](double max_epochs, int64_t max_steps, bool drop_last) {
    LoaderConfig config = config_of(3, 1, max_epochs);
    config.max_steps = max_steps;
    config.drop_last = drop_last;
    Loader loader(corpus, all_of(*corpus), config);
    const auto steps = static_cast<int64_t>(drain(loader).size());
    EXPECT_EQ(loader.total_steps(), steps);
    return steps;
  };
  EXPECT_EQ(count(1, 0, false), 4);
  EXPECT_EQ(count(1, 0, true), 3);
  EXPECT_EQ(count(2, 0, true), 6);
  EXPECT_EQ(count(0.5, 0, false), 2);
  EXPECT_EQ(count(1.5, 0, false), 6);
  EXPECT_EQ(count(0, 9, false), 9);
  EXPECT_EQ(count(5, 9, false), 9);
  EXPECT_EQ(count(1, 9, false), 4);
  LoaderConfig endless = config_of(3, 1, 0);
  Loader loader(corpus, all_of(*corpus), endless);
  EXPECT_EQ(loader.total_steps(), 0);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(loader.next());
}

// Splitting a step into micro-batches differently changes neither its tokens nor their count.
TEST(Loader, TokenWeightsDoNotDependOnTheSplit) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, {5, 9, 2, 7, 3, 8, 4, 6}, false);
  Loader whole(corpus, all_of(*corpus), config_of(4, 1, 1)), parts(corpus, all_of(*corpus), config_of(1, 4, 1));
  for (int i = 0; i < 2; ++i) {
    const auto one = whole.next(), four = parts.next();
    ASSERT_TRUE(one && four);
    EXPECT_EQ(one->trained_tokens, four->trained_tokens);
    std::vector<int32_t> targets;
    for (const MicroBatch& batch : four->micro_batches) {
      targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
      EXPECT_EQ(batch.trained_tokens, std::ssize(batch.ids) - 1);
    }
    EXPECT_EQ(one->micro_batches[0].targets, targets);
  }
}

// Property: a run stopped after any step and begun anew from its position equals the run never stopped.
TEST(Loader, RestoredAtEveryStepEqualsUninterrupted) {
  const DataFolder folder;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const bool is_text = rng.below(2) == 0;
    std::vector<int64_t> lengths;
    for (uint64_t i = 0; i < 4 + rng.below(30); ++i)
      lengths.push_back(static_cast<int64_t>(2 + rng.below(is_text ? 40 : 15)));
    const auto corpus = corpus_of(folder, lengths, is_text);
    LoaderConfig config = config_of(static_cast<int64_t>(1 + rng.below(4)), static_cast<int64_t>(1 + rng.below(3)),
                                    1 + 2 * rng.uniform());
    config.order = {.seed = rng.next(),
                    .shuffle = rng.below(4) != 0,
                    .layout = static_cast<Layout>(rng.below(4)),
                    .max_length = static_cast<int64_t>(16 + rng.below(10)),
                    .pack_look_ahead = static_cast<int64_t>(1 + rng.below(20))};
    config.prefetch = static_cast<int64_t>(1 + rng.below(5));
    Loader whole(corpus, all_of(*corpus), config);
    std::vector<Position> positions = {whole.position()};
    std::vector<StepBatch> steps;
    while (auto step = whole.next()) {
      steps.push_back(std::move(*step));
      positions.push_back(whole.position());
    }
    ASSERT_EQ(static_cast<int64_t>(steps.size()), whole.total_steps());
    for (size_t at = 0; at < positions.size(); ++at) {
      const Position saved = Position::from_json(Json::parse(positions[at].to_json().dump()));
      Loader restored(corpus, all_of(*corpus), config, saved);
      EXPECT_EQ(restored.position(), positions[at]);
      EXPECT_EQ(restored.total_steps(), static_cast<int64_t>(steps.size()));
      for (size_t i = at; i < steps.size(); ++i) expect_same(steps[i], restored.next());
      EXPECT_FALSE(restored.next());
    }
  }
}

TEST(Loader, PrefetchChangesNothing) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(40, 5), false);
  LoaderConfig config = config_of(3, 2, 2);
  config.prefetch = 1;
  Loader one(corpus, all_of(*corpus), config);
  config.prefetch = 64;
  Loader many(corpus, all_of(*corpus), config);
  for (int64_t i = 0; i <= one.total_steps(); ++i) expect_same(one.next(), many.next());
}

TEST(Loader, RefusesAPositionOfOtherDataNamingBoth) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, {5, 6, 7, 8}, false), changed = corpus_of(folder, {5, 6, 7, 9}, false);
  Loader loader(corpus, all_of(*corpus), config_of(1, 1, 0));
  loader.next();
  const Position saved = loader.position();
  const Loader other(changed, all_of(*changed), config_of(1, 1, 0));
  EXPECT_THAT(error_of<DataError>([&] { Loader(changed, all_of(*changed), config_of(1, 1, 0), saved); }),
              AllOf(HasSubstr(saved.fingerprint), HasSubstr(other.position().fingerprint),
                    HasSubstr("training data changed"), HasSubstr(changed->files().front())));
  const Split split = split_corpus(*corpus, {.fraction = 0, .count = 1, .seed = 0});
  EXPECT_THROW(Loader(corpus, split.train, config_of(1, 1, 0), saved), DataError) << "another split is other data";
}

TEST(Loader, RefusesAPositionOfAnotherOrder) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, {5, 6, 7, 8}, false);
  const Position saved = Loader(corpus, all_of(*corpus), config_of(1, 1, 0)).position();
  const auto error_with = [&](auto&& change) {
    LoaderConfig config = config_of(1, 1, 0);
    change(config.order);
    return error_of<ConfigError>([&] { Loader(corpus, all_of(*corpus), config, saved); });
  };
  EXPECT_EQ(error_with([](OrderConfig&) {}), "");
  EXPECT_THAT(error_with([](OrderConfig& order) { order.seed = 5; }), HasSubstr("seed 0, now it is 5"));
  EXPECT_THAT(error_with([](OrderConfig& order) { order.shuffle = false; }), HasSubstr("shuffle on, now it is off"));
  EXPECT_THAT(error_with([](OrderConfig& order) { order.layout = Layout::packed; }), HasSubstr("layout documents"));
  EXPECT_THAT(error_with([](OrderConfig& order) { order.max_length = 99; }), HasSubstr("max_length 1024"));
}

TEST(Loader, BatchAndAccumulateMayChangeBetweenRuns) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(12, 5), false);
  Loader first(corpus, all_of(*corpus), config_of(2, 2, 1));
  const auto begun = first.next();
  Loader second(corpus, all_of(*corpus), config_of(8, 1, 1), first.position());
  const auto rest = drain(second);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].step, 1);
  std::vector<int> seen(12);
  for (const auto* step : {&*begun, &rest[0]}) {
    for (const MicroBatch& batch : step->micro_batches) {
      for (const int64_t sample : batch.sample_indices) ++seen[static_cast<size_t>(sample)];
    }
  }
  EXPECT_THAT(seen, testing::Each(1));
}

TEST(Loader, RefusesContradictions) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(3, 5), false);
  const auto make = [&](const LoaderConfig& config) { Loader loader(corpus, all_of(*corpus), config); };
  EXPECT_THROW(make(config_of(0, 1, 0)), ConfigError);
  EXPECT_THROW(make(config_of(1, 0, 0)), ConfigError);
  EXPECT_THROW(make(config_of(1, 1, -1)), ConfigError);
  LoaderConfig config = config_of(4, 1, 0);
  config.drop_last = true;
  EXPECT_THAT(error_of<ConfigError>([&] { make(config); }), HasSubstr("drop_last"));
  EXPECT_THROW(Loader(corpus, {}, config_of(1, 1, 0)), ConfigError);
}

TEST(Loader, EndsWhileItsThreadIsBlockedOrBusy) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(50, 5), false);
  for (int i = 0; i < 300; ++i) {
    LoaderConfig config = config_of(1, 1, 0);
    config.prefetch = 1 + i % 3;
    Loader loader(corpus, all_of(*corpus), config);
    for (int taken = 0; taken < i % 7; ++taken) loader.next();
  }
}

TEST(Loader, ErrorsOfItsThreadReachTheCaller) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, std::vector<int64_t>(3, 5), true);
  // A piece longer than any vector: the thread fails when it makes the batch.
  constexpr int64_t kTooLong = int64_t{1} << 62;
  std::vector<Piece> pieces = all_of(*corpus);
  pieces[1].end = pieces[1].document_end = pieces[1].begin + kTooLong;
  LoaderConfig config = config_of(1, 1, 1);
  config.order.shuffle = false;
  config.order.max_length = kTooLong;
  Loader loader(corpus, pieces, config);
  EXPECT_TRUE(loader.next());
  EXPECT_THROW(loader.next(), std::length_error);
  EXPECT_THROW(loader.next(), std::length_error) << "an error stays an error";
}

TEST(Evaluation, FixedOrderAndTheSameLayout) {
  const DataFolder folder;
  const auto corpus = corpus_of(folder, {5, 6, 7, 8, 9}, false);
  OrderConfig order;
  order.seed = 9;
  Evaluation evaluation(corpus, all_of(*corpus), order, 2);
  EXPECT_EQ(evaluation.micro_batches(), 3);
  for (int pass = 0; pass < 2; ++pass, evaluation.rewind()) {
    EXPECT_EQ(evaluation.next()->sample_indices, (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(evaluation.next()->sample_indices, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(evaluation.next()->sample_indices, (std::vector<int64_t>{4}));
    EXPECT_FALSE(evaluation.next());
  }
  EXPECT_FALSE(Evaluation(corpus, {}, order, 2).next());
  EXPECT_THROW(Evaluation(corpus, {}, order, 0), ConfigError);
}

}  // namespace
}  // namespace headrace::data
