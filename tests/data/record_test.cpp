#include "headrace/data/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Record read(std::string_view line, const std::string& group_field = "") {
  const Json json = parse_record(line);
  return read_record(json, detect_format(json), group_field);
}

std::string error_in(std::string_view line, const std::string& group_field = "") {
  return error_of<DataError>([&] { read(line, group_field); });
}

std::string spell_messages(const Record& record) {
  std::string text;
  for (const Message& message : record.messages) text += message.role + "=" + message.content + ";";
  return text;
}

TEST(Record, ReadsEveryForm) {
  EXPECT_EQ(spell_messages(
                read(R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]})")),
            "user=hi;assistant=yo;");
  EXPECT_EQ(
      spell_messages(read(R"({"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "hi"},
                                   {"from": "gpt", "value": "yo"}]})")),
      "system=s;user=hi;assistant=yo;");
  const Record instruction = read(R"({"instruction": "add", "input": "1 2", "output": "3"})");
  EXPECT_EQ(instruction.format, Format::instruction);
  EXPECT_EQ(instruction.prompt, "### Instruction:\nadd\n\n### Input:\n1 2\n\n### Response:\n");
  EXPECT_EQ(instruction.completion, "3");
  EXPECT_EQ(spell_messages(instruction), "user=add\n\n1 2;assistant=3;");
  EXPECT_EQ(spell_messages(read(R"({"instruction": "add", "input": "", "output": "3"})")), "user=add;assistant=3;");
  EXPECT_EQ(spell_messages(read(R"({"system": "be", "prompt": "p", "completion": "c"})")),
            "system=be;user=p;assistant=c;");
  EXPECT_EQ(read(R"({"text": "some"})").text, "some");
}

TEST(Record, ContentMayComeInParts) {
  EXPECT_EQ(spell_messages(read(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
                                   {"type": "text", "text": "b"}]}]})")),
            "user=ab;");
  EXPECT_THAT(error_in(R"({"messages": [{"role": "user", "content": [{"type": "image", "url": "x"}]}]})"),
              HasSubstr("messages[0].content has a part that is not text"));
}

TEST(Record, MessagesWinOverOtherKeys) {
  EXPECT_EQ(read(R"({"prompt": "p", "text": "t", "messages": [{"role": "user", "content": "a"}]})").format,
            Format::chat);
}

TEST(Record, NamesWhatIsWrong) {
  EXPECT_THAT(error_in("[1]"), HasSubstr("jq -c"));
  EXPECT_THAT(error_in("{\"text\": "), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_in("{\"text\": \"\xFF\"}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_in(R"({"text": "\ud800"})"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_in(R"({"txt": "a", "id": 3})"), AllOf(HasSubstr("id, txt"), HasSubstr("Expected messages")));
  EXPECT_THAT(error_in(R"({"text": 3})"), HasSubstr("'text' is number"));
  EXPECT_THAT(error_in(R"({"messages": []})"), HasSubstr("empty"));
  EXPECT_THAT(error_in(R"({"messages": [3]})"), HasSubstr("messages[0] is number"));
  EXPECT_THAT(error_in(R"({"messages": [{"role": "user"}]})"), HasSubstr("needs role and content"));
  EXPECT_THAT(error_in(R"({"messages": [{"role": "user", "content": null}]})"), HasSubstr("content is null"));
  EXPECT_THAT(error_in(R"({"messages": [{"role": 1, "content": "a"}]})"), HasSubstr("role is number"));
  EXPECT_THAT(error_in(R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [{}]}]})"),
              HasSubstr("tool_calls"));
  EXPECT_THAT(error_in(R"({"messages": [{"role": "assistant", "content": "a", "weight": 0}]})"), HasSubstr("weight"));
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(error_in("{\"text\": " + deep + "}"), HasSubstr("nested"));
}

TEST(Record, AnotherFormThanTheFilesIsNamed) {
  EXPECT_THAT(error_of<DataError>([] { read_record(parse_record(R"({"text": "a"})"), Format::chat, ""); }),
              AllOf(HasSubstr("form chat"), HasSubstr("this one is text")));
}

TEST(Record, GroupsByAPlainValue) {
  const Record one = read(R"({"text": "a", "headword": "cat"})", "headword");
  EXPECT_NE(one.group, 0u);
  EXPECT_EQ(one.group, read(R"({"text": "b", "headword": "cat"})", "headword").group);
  EXPECT_NE(one.group, read(R"({"text": "b", "headword": "dog"})", "headword").group);
  EXPECT_NE(read(R"({"text": "b", "headword": 3})", "headword").group, 0u);
  EXPECT_THAT(error_in(R"({"text": "a"})", "headword"), HasSubstr("'headword' is missing"));
  EXPECT_THAT(error_in(R"({"text": "a", "headword": {}})", "headword"), HasSubstr("no plain value"));
}

}  // namespace
}  // namespace headrace::data
