// Which of the known templates a model folder's own one is: by what must and must not stand in its text.
#include <algorithm>
#include <fstream>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/tokenizer/chat_style.h"

namespace headrace::tokenizer {
namespace {

constexpr size_t kMaxFile = size_t{64} << 20;  // [bytes] tokenizer_config.json of large vocabularies lists added tokens

struct Marks {
  std::string_view name;
  std::vector<std::string_view> must;
  std::vector<std::string_view> must_not;
};

// Double quotes are written here as single ones. Rows are tried in order.
const std::vector<Marks>& all_marks() {
  static const std::vector<std::string_view> kOtherChatMl = {"<think>",   "loop.last", "bos_token",
                                                             "eos_token", "trim",      ".strip("};
  static const std::string_view kTurn = "message['role'] + '\\n' + message['content'] + '<|im_end|>'";
  static const std::string_view kTurnDotted = "message.role + '\\n' + message.content + '<|im_end|>'";
  static const std::string_view kPrompt = "if add_generation_prompt";
  static const std::vector<Marks> marks = {
      {"qwen3",
       {"<|im_start|>", "last_query_index", "reasoning_content.strip('\\n')", "enable_thinking is false", kPrompt},
       {"bos_token", "eos_token", "You are Qwen"}},
      {"qwen2.5",
       {kTurnDotted, "system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>",
        kPrompt},
       {"<think>", "bos_token", "eos_token", "trim", "strip("}},
      {"qwen2", {kTurn, "'<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n'", kPrompt}, kOtherChatMl},
      {"smollm2",
       {kTurn,
        "'<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\\n'",
        kPrompt},
       kOtherChatMl},
      {"chatml",
       {kTurn, kPrompt},
       {"<think>", "loop.last", "bos_token", "eos_token", "trim", ".strip(", "You are", "system", "raise_exception"}},
      {"llama3.1",
       {"<|start_header_id|>", "Cutting Knowledge Date: December 2023\\n", "date_string = '26 Jul 2024'",
        "message['content'] | trim + '<|eot_id|>'", kPrompt},
       {"strftime_now", "if system_message %}"}},
      {"llama3",
       {"'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>'",
        "set content = bos_token + content", kPrompt},
       {"Cutting Knowledge", "raise_exception"}},
      {"llama2",
       {"'<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content']",
        "bos_token + '[INST] ' + content.strip() + ' [/INST]'", "' '  + content.strip() + ' ' + eos_token"},
       {"true == true"}},
      {"mistral",
       {"'[INST] ' + message['content'] + '[/INST]'", "if loop.last and system_message is defined",
        "' ' + message['content']|trim + eos_token"},
       {}},
      {"mistral-nemo",
       {"'[INST]' + message['content'] + '[/INST]'", "if loop.last and system_message is defined",
        "{{- message['content'] + eos_token"},
       {}},
      {"mistral-v0.2",
       {"' [INST] ' + message['content'] + ' [/INST]'", "if loop.first and system_message is defined",
        "' ' + message['content'] + eos_token"},
       {"eos_token + ' '"}},
      {"mistral-v0.1",
       {"{{ '[INST] ' + message['content'] + ' [/INST]' }}", "{{ message['content'] + eos_token", "raise_exception"},
       {"system_message", "eos_token + ' '", "SYS"}},
  };
  return marks;
}

// Line ends inside string literals may be written as they are or as \n: both become \n. Quotes become single ones.
std::string plain(std::string_view jinja) {
  std::string out;
  for (const char c : jinja) {
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c == '"' ? '\'' : c;
    }
  }
  return out;
}

std::string known_names() {
  std::string out;
  for (const std::string_view name : ChatTemplate::names()) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

[[noreturn]] void refuse(std::string_view source, const std::string& fact) {
  throw ConfigError("tokenizer.template",
                    std::string(source) + ": " + fact + " Choose one with --chat-template: " + known_names() + ".");
}

std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw IoError("tokenizer.template", "cannot read", path.string(), error.value());
  if (size > kMaxFile) {
    throw DataError("tokenizer.template", path.string() + " has " + std::to_string(size) + " bytes; at most " +
                                              std::to_string(kMaxFile) + " are read.");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    throw IoError("tokenizer.template", "cannot read", path.string(), errno);
  }
  return text;
}

// The "chat_template" of a tokenizer_config.json: a string, or a list of {"name", "template"} with a "default".
std::string template_in(const Json& config, const std::string& source) {
  const auto found = config.is_object() ? config.find("chat_template") : config.end();
  if (found == config.end() || found->is_null()) refuse(source, "the model has no chat template.");
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array()) {
    for (const Json& item : *found) {
      if (item.is_object() && item.value("name", Json()) == "default" && item.contains("template") &&
          item["template"].is_string()) {
        return item["template"].get<std::string>();
      }
    }
  }
  refuse(source, "the chat template is neither a text nor a list with a \"default\".");
}

}  // namespace

ChatTemplate ChatTemplate::from_text(std::string_view jinja, std::string_view source) {
  const std::string text = plain(jinja);
  const auto holds = [&](std::string_view mark) { return text.find(mark) != std::string::npos; };
  for (const Marks& marks : all_marks()) {
    if (std::all_of(marks.must.begin(), marks.must.end(), holds) &&
        std::none_of(marks.must_not.begin(), marks.must_not.end(), holds)) {
      return by_name(marks.name);
    }
  }
  if (holds("Cutting Knowledge Date") && holds("strftime_now")) {
    refuse(source,
           "the chat template writes today's date, so no two days train alike (llama3.1 is the same with a "
           "fixed date).");
  }
  refuse(source, "the chat template is not one of those known.");
}

ChatTemplate ChatTemplate::recognise(const std::filesystem::path& model_folder) {
  const auto jinja = model_folder / "chat_template.jinja";
  std::error_code ignored;
  if (std::filesystem::exists(jinja, ignored)) return from_text(read_text(jinja), jinja.string());
  const auto config = model_folder / "tokenizer_config.json";
  if (!std::filesystem::exists(config, ignored)) refuse(config.string(), "there is no such file.");
  const Json json = parse_json(read_text(config), "tokenizer.template", config.string());
  return from_text(template_in(json, config.string()), config.string());
}

}  // namespace headrace::tokenizer
