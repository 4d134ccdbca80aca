#include "headrace/train/training_data.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_folder.h"

namespace headrace::train {
namespace {

// One token a byte.
data::Codec byte_codec() {
  data::Codec codec;
  codec.encode = [](std::string_view text) {
    data::EncodedText encoded;
    for (size_t i = 0; i < text.size(); ++i) {
      encoded.ids.push_back(static_cast<unsigned char>(text[i]));
      encoded.begins.push_back(static_cast<int64_t>(i));
    }
    return encoded;
  };
  codec.vocabulary = 256;
  return codec;
}

class TrainingDataTest : public ::testing::Test {
 protected:
  config::TrainConfig config(const std::string& text) {
    support::write_file(folder_ / "data.jsonl", text);
    config::TrainConfig config;
    config.data = {folder_ / "data.jsonl"};
    config.batch = 2;
    return config;
  }
  TempFolder folder_;
};

TEST_F(TrainingDataTest, LargestMicroBatchIsThatOfTheLongestSequences) {
  const config::TrainConfig settings = config("{\"text\": \"abc\"}\n{\"text\": \"abcdefgh\"}\n{\"text\": \"abcde\"}\n");
  const TrainingData data = open_training_data(settings, byte_codec(), 100, {});
  EXPECT_EQ(largest_micro_batch(*data.corpus, 2, 100, "documents"), 13);
  EXPECT_EQ(largest_micro_batch(*data.corpus, 2, 6, "documents"), 11);  // 6 of eight and five
  EXPECT_EQ(largest_micro_batch(*data.corpus, 9, 4, "documents"), 16);  // all there is
  EXPECT_EQ(largest_micro_batch(*data.corpus, 2, 100, "packed"), 200);
}

TEST_F(TrainingDataTest, NoMicroBatchIsLarger) {
  std::string text;
  for (int i = 1; i < 40; ++i)
    text += "{\"text\": \"" + std::string(static_cast<size_t>(i * 7 % 31 + 1), 'x') + "\"}\n";
  config::TrainConfig settings = config(text);
  settings.batch = 3;
  const TrainingData data = open_training_data(settings, byte_codec(), 20, {});
  const int64_t limit = largest_micro_batch(*data.corpus, 3, 20, "documents");
  int64_t steps = 0;
  while (const auto step = data.loader->next()) {
    for (const data::MicroBatch& batch : step->micro_batches) {
      EXPECT_LE(static_cast<int64_t>(batch.ids.size()), limit);
    }
    ++steps;
  }
  EXPECT_EQ(steps, data.loader->total_steps());
}

// Held-out files need not have the key by which the training files would be split.
TEST_F(TrainingDataTest, EvaluationFilesNeedNoGroup) {
  config::TrainConfig settings =
      config("{\"text\": \"abc\", \"source\": \"a\"}\n{\"text\": \"abc\", \"source\": \"b\"}\n");
  settings.group_field = "source";
  support::write_file(folder_ / "held_out.jsonl", "{\"text\": \"defg\"}\n");
  settings.eval_data = {folder_ / "held_out.jsonl"};
  TrainingData data = open_training_data(settings, byte_codec(), 100, {});
  ASSERT_TRUE(data.evaluation.has_value());
  EXPECT_EQ(data.evaluation->next()->trained_tokens, 3);
}

}  // namespace
}  // namespace headrace::train
