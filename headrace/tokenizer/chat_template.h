// Chat templates rendered by name, identical to transformers' apply_chat_template (no tools, no documents). Not a
// Jinja interpreter: the templates of the families are written out, and a folder's own template is recognised or
// refused. Pure; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::tokenizer {

struct Message {
  std::string role;  // system, user or assistant
  std::string content;
};

class ChatTemplate {
 public:
  struct Rendering {
    std::string text;  // special tokens spelt out; encode() adds none, so this is the whole input
    // Byte ranges of `text`, ascending: of every assistant turn what the model has to generate, that is its content
    // (with what the template writes between the generation prompt and it) and its end-of-turn token, not the newline
    // that the template puts after it.
    std::vector<std::pair<size_t, size_t>> trained;
  };

  // The names by_name() knows, for --help and errors.
  static std::span<const std::string_view> names();

  // Throws ConfigError listing the names when `name` is none of them.
  static ChatTemplate by_name(std::string_view name);

  // From `model_folder`/chat_template.jinja or tokenizer_config.json's chat_template (a string, or a list with a
  // "default"). Throws ConfigError that names --chat-template when the folder has none or one we do not know.
  static ChatTemplate recognise(const std::filesystem::path& model_folder);

  // The same from the template's text; `source` names it in the error.
  static ChatTemplate from_text(std::string_view jinja, std::string_view source);

  // Throws DataError naming the message's index (from 0) when there are no messages, a role is unknown, or the
  // template wants user and assistant to alternate and they do not.
  Rendering render(std::span<const Message> messages, bool add_generation_prompt) const;

  std::string_view name() const;
  // The token that ends an assistant turn, for example "<|im_end|>"; generation stops there.
  std::string_view end_of_turn() const;

  struct Style;  // one row of the table in chat_template.cpp

 private:
  explicit ChatTemplate(const Style& style) : style_(&style) {}
  const Style* style_;
};

}  // namespace headrace::tokenizer
