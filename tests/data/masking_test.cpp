// CASES.md "masks": both turns are trained, the end of turn included and the template's newline after it not.
#include "headrace/data/masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::HasSubstr;

Record chat(std::vector<Message> messages) {
  Record record;
  record.format = Format::chat;
  record.messages = std::move(messages);
  return record;
}

TEST(Masking, EveryAssistantTurnWithItsEnd) {
  const Record record =
      chat({{"system", "s"}, {"user", "q1"}, {"assistant", "a1"}, {"user", "q2"}, {"assistant", "a2"}});
  const Sample sample = make_sample(record, toy_codec(), LossOn::assistant, true);
  EXPECT_EQ(spell(sample.ids, sample.trained), "a1[E]a2[E]");
  EXPECT_EQ(spell(sample.ids, sample.trained, 0),
            "[S]system\ns[E]\n[S]user\nq1[E]\n[S]assistant\n\n[S]user\nq2[E]\n[S]assistant\n\n");
  EXPECT_FALSE(sample.is_text);
}

TEST(Masking, AllTokensButTheFirst) {
  const Sample sample = make_sample(chat({{"user", "q"}, {"assistant", "a"}}), toy_codec(), LossOn::all, true);
  EXPECT_EQ(spell(sample.ids, sample.trained), "user\nq[E]\n[S]assistant\na[E]\n");
  EXPECT_EQ(sample.trained[0], 0);
}

TEST(Masking, ATokenIsTrainedWhenItsFirstByteIs) {
  const std::vector<int64_t> begins = {0, 3, 5, 5, 9, 12, 20};
  const std::vector<std::pair<int64_t, int64_t>> ranges = {{4, 6}, {9, 12}};
  EXPECT_EQ(mark_trained(begins, ranges), (std::vector<uint8_t>{0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(mark_trained(begins, {}), std::vector<uint8_t>(7, 0));
}

TEST(Masking, CompletionsWithAndWithoutTemplate) {
  Record record;
  record.format = Format::prompt_completion;
  record.prompt = "p";
  record.completion = "c";
  record.messages = {{"user", "p"}, {"assistant", "c"}};
  const Sample with = make_sample(record, toy_codec(), LossOn::assistant, true);
  EXPECT_EQ(spell(with.ids, with.trained), "c[E]");
  EXPECT_EQ(spell(with.ids, with.trained, 0), "[S]user\np[E]\n[S]assistant\n\n");
  Codec codec = toy_codec(false);
  codec.prefix = {kStart};
  const Sample without = make_sample(record, codec, LossOn::assistant, true);
  EXPECT_EQ(spell(without.ids, without.trained), "c[T]");
  EXPECT_EQ(spell(without.ids, without.trained, 0), "[S]p");
  EXPECT_EQ(make_sample(record, codec, LossOn::assistant, false).ids.size(), 3u);
}

TEST(Masking, TextIsTrainedWhole) {
  Record record;
  record.text = "abc";
  const Sample sample = make_sample(record, toy_codec(), LossOn::assistant, true);
  EXPECT_EQ(spell(sample.ids, sample.trained), "bc[T]");
  EXPECT_TRUE(sample.is_text);
  Codec codec = toy_codec();
  codec.prefix = {kStart};
  codec.end_of_text.reset();
  const Sample prefixed = make_sample(record, codec, LossOn::assistant, true);
  EXPECT_EQ(spell(prefixed.ids, prefixed.trained), "abc");
}

TEST(Masking, ChatWithoutTemplateIsRefused) {
  EXPECT_THAT(error_of<DataError>([] {
                make_sample(chat({{"user", "q"}}), toy_codec(false), LossOn::all, true);
              }),
              HasSubstr("--chat-template"));
}

}  // namespace
}  // namespace headrace::data
