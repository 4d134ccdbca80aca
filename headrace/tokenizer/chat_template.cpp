#include "headrace/tokenizer/chat_template.h"

#include <algorithm>
#include <array>

#include "headrace/base/errors.h"
#include "headrace/tokenizer/chat_style.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

using Style = ChatTemplate::Style;
using Rendering = ChatTemplate::Rendering;

// What Python's str.strip() and Jinja's trim take away.
bool is_python_space(uint32_t c) {
  return (c >= 0x9 && c <= 0xd) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

std::string_view strip(std::string_view text) {
  while (!text.empty()) {
    const int bytes = utf8_front(text);
    if (bytes <= 0 || !is_python_space(code_point_at(text.data()).value)) break;
    text.remove_prefix(static_cast<size_t>(bytes));
  }
  while (!text.empty()) {
    const size_t last = previous_start(text, text.size());
    const std::string_view tail = text.substr(last);
    if (utf8_front(tail) != static_cast<int>(tail.size()) || !is_python_space(code_point_at(tail.data()).value)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string_view strip_newlines_left(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}
std::string_view strip_newlines_right(std::string_view text) { return text.substr(0, text.find_last_not_of('\n') + 1); }

[[noreturn]] void fail(size_t index, const std::string& fact) {
  throw DataError("tokenizer.render", "message " + std::to_string(index) + ": " + fact);
}

void check_roles(std::span<const Message> messages) {
  if (messages.empty()) fail(0, "the conversation is empty.");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant") {
      fail(i, "unknown role \"" + role + "\"; system, user and assistant are known.");
    }
  }
}

// Writes what the model has to generate in one assistant turn and notes where it lies.
void put_trained(Rendering& out, std::initializer_list<std::string_view> parts) {
  const size_t begin = out.text.size();
  for (const std::string_view part : parts) out.text += part;
  out.trained.emplace_back(begin, out.text.size());
}

void render_chatml_turn(const Message& message, Rendering& out) {
  out.text += "<|im_start|>" + message.role + "\n";
  if (message.role == "assistant") {
    put_trained(out, {message.content, "<|im_end|>"});
  } else {
    out.text += message.content + "<|im_end|>";
  }
  out.text += "\n";
}

Rendering render_chatml(const Style& style, std::span<const Message> messages) {
  Rendering out;
  if (!style.default_system.empty() && messages[0].role != "system") {
    out.text.append("<|im_start|>system\n").append(style.default_system).append("<|im_end|>\n");
  }
  for (const Message& message : messages) render_chatml_turn(message, out);
  return out;
}

// Qwen 3 keeps the thoughts of the turns after the last question only, and gives the last turn an empty thought when
// it has none.
void render_qwen3_turn(const Message& message, bool after_query, bool is_last, Rendering& out) {
  std::string_view content = message.content;
  std::string_view thought;
  const size_t first_close = content.find("</think>");
  if (first_close != std::string_view::npos) {
    thought = strip_newlines_right(content.substr(0, first_close));
    const size_t open = thought.rfind("<think>");
    if (open != std::string_view::npos) thought.remove_prefix(open + 7);
    thought = strip_newlines_left(thought);
    content = strip_newlines_left(content.substr(content.rfind("</think>") + 8));
  }
  out.text += "<|im_start|>assistant\n";
  if (after_query && (is_last || !thought.empty())) {
    put_trained(out, {"<think>\n", strip_newlines_right(strip_newlines_left(thought)), "\n</think>\n\n",
                      strip_newlines_left(content), "<|im_end|>"});
  } else {
    put_trained(out, {content, "<|im_end|>"});
  }
  out.text += "\n";
}

Rendering render_qwen3(std::span<const Message> messages) {
  size_t last_query = messages.size() - 1;
  for (size_t i = messages.size(); i-- > 0;) {
    const std::string_view content = messages[i].content;
    const bool is_tool_answer = content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
    if (messages[i].role == "user" && !is_tool_answer) {
      last_query = i;
      break;
    }
  }
  Rendering out;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role == "assistant") {
      render_qwen3_turn(messages[i], i > last_query, i + 1 == messages.size(), out);
    } else {
      render_chatml_turn(messages[i], out);
    }
  }
  return out;
}

Rendering render_llama3(const Style& style, std::span<const Message> messages) {
  Rendering out;
  out.text = "<|begin_of_text|>";
  if (!style.default_system.empty()) {
    const bool has_system = messages[0].role == "system";
    out.text.append("<|start_header_id|>system<|end_header_id|>\n\n").append(style.default_system);
    if (has_system) out.text += strip(messages[0].content);
    out.text += "<|eot_id|>";
    if (has_system) messages = messages.subspan(1);
  }
  for (const Message& message : messages) {
    out.text += "<|start_header_id|>" + message.role + "<|end_header_id|>\n\n";
    if (message.role == "assistant") {
      put_trained(out, {strip(message.content), "<|eot_id|>"});
    } else {
      out.text.append(strip(message.content)).append("<|eot_id|>");
    }
  }
  return out;
}

// Llama 2 and Mistral: user and assistant alternate, the system message stands within a user turn.
Rendering render_instruct(const Style& style, std::span<const Message> messages) {
  const InstructStyle& form = style.instruct;
  const bool has_system = messages[0].role == "system";
  if (has_system && form.system_at == SystemAt::kNowhere) fail(0, "this template has no place for a system message.");
  if (has_system && messages.size() == 1) fail(0, "a system message without a user message after it.");
  Rendering out;
  if (!form.begins_every_turn) out.text = "<s>";
  for (size_t i = has_system ? 1 : 0; i < messages.size(); ++i) {
    const size_t turn = i - (has_system ? 1 : 0);
    const Message& message = messages[i];
    const std::string_view wanted = turn % 2 == 0 ? "user" : "assistant";
    if (message.role != wanted) {
      fail(i, "role \"" + message.role + "\" where \"" + std::string(wanted) +
                  "\" must stand: after an optional system message user and assistant alternate.");
    }
    if (message.role == "assistant") {
      const std::string_view content = form.strips_assistant ? strip(message.content) : message.content;
      put_trained(out, {form.before_assistant, content, form.after_assistant, "</s>"});
      continue;
    }
    const bool is_system_place = form.system_at == SystemAt::kFirstTurn ? turn == 0 : i + 1 == messages.size();
    std::string content = message.content;
    if (has_system && is_system_place) {
      content = std::string(form.before_system) + messages[0].content + std::string(form.after_system) + content;
    }
    if (form.begins_every_turn) out.text += "<s>";
    out.text.append(form.before_user).append(form.strips_user ? strip(content) : content).append(form.after_user);
  }
  return out;
}

}  // namespace

std::span<const std::string_view> ChatTemplate::names() {
  static const auto all = [] {
    std::array<std::string_view, kChatStyles.size()> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = kChatStyles[i].name;
    return names;
  }();
  return all;
}

ChatTemplate ChatTemplate::by_name(std::string_view name) {
  if (name == "qwen") name = "qwen2.5";
  std::string known;
  for (const Style& style : kChatStyles) {
    if (style.name == name) return ChatTemplate(style);
    known.append(known.empty() ? "" : ", ").append(style.name);
  }
  throw ConfigError("tokenizer.template",
                    "--chat-template \"" + std::string(name) + "\" is not known. Known are " + known + ".");
}

Rendering ChatTemplate::render(std::span<const Message> messages, bool add_generation_prompt) const {
  check_roles(messages);
  Rendering out;
  switch (style_->kind) {
    case ChatKind::kChatMl:
      out = render_chatml(*style_, messages);
      break;
    case ChatKind::kQwen3:
      out = render_qwen3(messages);
      break;
    case ChatKind::kLlama3:
      out = render_llama3(*style_, messages);
      break;
    case ChatKind::kInstruct:
      out = render_instruct(*style_, messages);
      break;
  }
  if (add_generation_prompt) out.text += style_->generation_prompt;
  return out;
}

std::string_view ChatTemplate::name() const { return style_->name; }
std::string_view ChatTemplate::end_of_turn() const { return style_->end_of_turn; }

}  // namespace headrace::tokenizer
