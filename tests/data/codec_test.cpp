// CASES.md "masks" with real tokenizers and chat templates: both turns of a conversation, each with its end of turn.
#include "headrace/data/codec.h"

#include <gtest/gtest.h>

#include "headrace/data/masking.h"
#include "headrace/tokenizer/chat_template.h"
#include "headrace/tokenizer/tokenizer.h"

namespace headrace::data {
namespace {

tokenizer::Tokenizer load_golden(const std::string& name) {
  return tokenizer::Tokenizer::load(std::string(HEADRACE_SOURCE_DIR) + "/tests/golden/tokenizer/" + name);
}

Record conversation(bool with_system) {
  Record record;
  record.format = Format::chat;
  if (with_system) record.messages.push_back({"system", "Be brief."});
  for (const auto& [user, assistant] :
       {std::pair{"What is 17+4?", "21, naïvely."}, std::pair{"And 中文?\n", "Ja 🙂"}}) {
    record.messages.push_back({"user", user});
    record.messages.push_back({"assistant", assistant});
  }
  return record;
}

std::string trained_text(const tokenizer::Tokenizer& tokenizer, const Sample& sample) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < sample.ids.size(); ++i) {
    if (sample.trained[i]) ids.push_back(sample.ids[i]);
  }
  return tokenizer.decode(ids, false);
}

TEST(Codec, EveryTurnOfEveryFamily) {
  struct Family {
    const char *tokenizer, *chat_template, *end_of_turn;
  };
  for (const Family& family : {Family{"smollm2", "smollm2", "<|im_end|>"}, Family{"qwen2", "chatml", "<|im_end|>"},
                               Family{"llama3", "llama3", "<|eot_id|>"}}) {
    const tokenizer::Tokenizer tokenizer = load_golden(family.tokenizer);
    const auto chat_template = tokenizer::ChatTemplate::by_name(family.chat_template);
    const Codec codec = codec_from(tokenizer, &chat_template);
    for (const bool with_system : {false, true}) {
      const Sample sample = make_sample(conversation(with_system), codec, LossOn::assistant, true);
      const std::string end = family.end_of_turn;
      EXPECT_EQ(trained_text(tokenizer, sample), "21, naïvely." + end + "Ja 🙂" + end) << family.tokenizer;
    }
  }
}

TEST(Codec, EndOfTextIsTheSeparatorOfDocuments) {
  for (const auto& [name, token] : {std::pair{"smollm2", "<|endoftext|>"}, std::pair{"llama2", "</s>"}}) {
    const tokenizer::Tokenizer tokenizer = load_golden(name);
    const Codec codec = codec_from(tokenizer, nullptr);
    ASSERT_TRUE(codec.end_of_text) << name;
    EXPECT_EQ(tokenizer.id_to_token(*codec.end_of_text), token);
    EXPECT_EQ(codec.vocabulary, tokenizer.vocabulary_size());
    EXPECT_FALSE(codec.render);
  }
}

TEST(Codec, TextIsEncodedWholeWithItsEnd) {
  const tokenizer::Tokenizer tokenizer = load_golden("smollm2");
  Record record;
  record.text = "A weir is a low dam.";
  const Sample sample = make_sample(record, codec_from(tokenizer, nullptr), LossOn::assistant, true);
  EXPECT_EQ(tokenizer.decode(sample.ids, false), record.text + "<|endoftext|>");
}

}  // namespace
}  // namespace headrace::data
