#include "headrace/tokenizer/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "headrace/base/errors.h"
#include "tests/tokenizer/golden.h"

namespace headrace::tokenizer {
namespace {

std::vector<Message> messages_of(const Json& list) {
  std::vector<Message> messages;
  for (const Json& item : list) messages.push_back({item[0], item[1]});
  return messages;
}

TEST(ChatTemplate, RendersLikeThePublishedTemplates) {
  const Json golden = read_golden("chat.json");
  size_t refused = 0;
  for (const Json& item : golden["cases"]) {
    const auto chat = ChatTemplate::by_name(item["template"].get<std::string>());
    const auto messages = messages_of(item["messages"]);
    const std::string label = item["template"].get<std::string>() + " " + item["messages"].dump();
    if (item["text"].is_null()) {
      ++refused;
      EXPECT_THROW(chat.render(messages, item["prompt"]), DataError) << label;
      continue;
    }
    try {
      EXPECT_EQ(chat.render(messages, item["prompt"]).text, item["text"].get<std::string>()) << label;
    } catch (const DataError& error) {
      // Stricter than the template: it drops these messages without a word.
      const bool drops = label.starts_with("llama2") || messages.back().role == "system";
      EXPECT_TRUE(drops) << label << ": " << error.what();
    }
  }
  EXPECT_GT(refused, 20u);
}

TEST(ChatTemplate, TrainsWhatTheModelHasToGenerate) {
  const std::vector<Message> messages = {{"user", "q1"}, {"assistant", "a1 "}, {"user", "q2"}, {"assistant", "a2"}};
  for (const std::string_view name : ChatTemplate::names()) {
    const auto chat = ChatTemplate::by_name(name);
    const auto all = chat.render(messages, false);
    ASSERT_EQ(all.trained.size(), 2u) << name;
    for (size_t turn = 0; turn < 2; ++turn) {
      const auto [begin, end] = all.trained[turn];
      const std::string trained = all.text.substr(begin, end - begin);
      EXPECT_TRUE(trained.ends_with(chat.end_of_turn())) << name << ": " << trained;
      EXPECT_NE(trained.find(turn == 0 ? "a1" : "a2"), std::string::npos) << name;
      EXPECT_EQ(trained.find("q"), std::string::npos) << name;
    }
    // The range begins where the generation prompt of the turns before it ends.
    const auto prompt = chat.render(std::span(messages).first(3), true);
    EXPECT_EQ(all.text.substr(0, all.trained[1].first), prompt.text) << name;
    if (all.trained[1].second < all.text.size()) {
      EXPECT_EQ(all.text.substr(all.trained[1].second), "\n") << name;
    }
  }
}

TEST(ChatTemplate, IsRecognisedByItsText) {
  const Json golden = read_golden("chat.json");  // items() refers to it
  for (const auto& [name, jinja] : golden["templates"].items()) {
    EXPECT_EQ(ChatTemplate::from_text(jinja.get<std::string>(), "f").name(), name);
  }
}

TEST(ChatTemplate, ATextThatDiffersIsNotTaken) {
  const Json templates = read_golden("chat.json")["templates"];
  const auto changed = [&](const char* name, const std::string& from, const std::string& to) {
    std::string text = templates[name];
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << name << " " << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("{{ messages }}"),
        changed("chatml", "message['content'] +", "message['content'] | trim +"),
        changed("smollm2", "named SmolLM", "named Other"), changed("llama3", "| trim ", ""),
        changed("llama2", "' '  + content.strip()", "content.strip()"), changed("mistral", "]|trim", "]"),
        changed("llama3.1", "26 Jul 2024", "27 Jul 2024"), changed("qwen3", "is false", "is true"),
        changed("mistral-v0.1", "+ eos_token", "+ eos_token + ' '")}) {
    try {
      const auto chat = ChatTemplate::from_text(text, "folder/tokenizer_config.json");
      ADD_FAILURE() << "taken for " << chat.name() << ": " << text;
    } catch (const ConfigError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("--chat-template"), std::string::npos) << what;
      EXPECT_NE(what.find("smollm2"), std::string::npos) << what;
      EXPECT_NE(what.find("folder/tokenizer_config.json"), std::string::npos) << what;
    }
  }
}

TEST(ChatTemplate, IsReadFromAModelFolder) {
  const Json templates = read_golden("chat.json")["templates"];
  const auto folder = std::filesystem::path(testing::TempDir()) / "chat_template_test";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* file, const std::string& text) { std::ofstream(folder / file) << text; };
  EXPECT_THROW(ChatTemplate::recognise(folder), ConfigError);
  write("tokenizer_config.json", "{}");
  EXPECT_THROW(ChatTemplate::recognise(folder), ConfigError);
  write("tokenizer_config.json", Json{{"chat_template", templates["smollm2"]}}.dump());
  EXPECT_EQ(ChatTemplate::recognise(folder).name(), "smollm2");
  write("tokenizer_config.json",
        Json{{"chat_template",
              {{{"name", "tool_use"}, {"template", "x"}}, {{"name", "default"}, {"template", templates["llama3"]}}}}}
            .dump());
  EXPECT_EQ(ChatTemplate::recognise(folder).name(), "llama3");
  write("tokenizer_config.json", "{");
  EXPECT_THROW(ChatTemplate::recognise(folder), DataError);
  write("chat_template.jinja", templates["qwen3"]);
  EXPECT_EQ(ChatTemplate::recognise(folder).name(), "qwen3");
  std::filesystem::remove_all(folder);
}

TEST(ChatTemplate, ErrorsNameTheMessage) {
  const auto expect_error = [](const char* name, std::vector<Message> messages, const std::string& what) {
    try {
      ChatTemplate::by_name(name).render(messages, false);
      ADD_FAILURE() << "no error: " << what;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  expect_error("chatml", {}, "empty");
  expect_error("chatml", {{"user", "a"}, {"tool", "b"}}, "message 1: unknown role \"tool\"");
  expect_error("llama2", {{"user", "a"}, {"user", "b"}}, "message 1");
  expect_error("mistral", {{"system", "a"}, {"assistant", "b"}}, "message 1");
  expect_error("mistral-v0.1", {{"system", "a"}, {"user", "b"}}, "message 0");
  EXPECT_THROW(ChatTemplate::by_name("vicuna"), ConfigError);
  EXPECT_EQ(ChatTemplate::by_name("qwen").name(), "qwen2.5");
}

}  // namespace
}  // namespace headrace::tokenizer
