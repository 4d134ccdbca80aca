#include "headrace/data/record.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::data {
namespace {

constexpr std::string_view kPlace = "data.read";

bool is_list(const Json& record, const char* key) { return record.contains(key) && record[key].is_array(); }

bool has_form(const Json& record, Format format) {
  switch (format) {
    case Format::chat:
      return is_list(record, "messages") || is_list(record, "conversations");
    case Format::instruction:
      return record.contains("instruction") && record.contains("output");
    case Format::prompt_completion:
      return record.contains("prompt") && record.contains("completion");
    case Format::text:
      return record.contains("text");
    default:
      return false;
  }
}

constexpr Format kForms[] = {Format::chat, Format::instruction, Format::prompt_completion, Format::text};

std::string name_keys(const Json& record) {
  std::string keys;
  int named = 0;
  for (const auto& [key, value] : record.items()) {
    if (++named > 8) return keys + ", ...";
    keys += (keys.empty() ? "" : ", ") + key.substr(0, 40);
  }
  return keys.empty() ? "none" : keys;
}

std::string read_text(const Json& record, const char* key) {
  if (!record[key].is_string()) {
    throw DataError(kPlace, "'" + std::string(key) + "' is " + record[key].type_name() + ", expected text.");
  }
  return record[key].get<std::string>();
}

// A key that may be missing, null or empty.
std::string read_optional_text(const Json& record, const char* key) {
  if (!record.contains(key) || record[key].is_null()) return "";
  return read_text(record, key);
}

// Text, or the parts of a text as multi-modal data writes it: [{"type": "text", "text": ...}].
std::string read_content(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) throw DataError(kPlace, where + " is " + content.type_name() + ", expected text.");
  std::string joined;
  for (const Json& part : content) {
    const bool is_text = part.is_object() && part.value("type", Json("text")) == "text" && part.contains("text") &&
                         part["text"].is_string();
    if (!is_text) throw DataError(kPlace, where + " has a part that is not text: only text can be trained on.");
    joined += part["text"].get<std::string>();
  }
  return joined;
}

std::string read_role(const Json& role, const std::string& where) {
  if (!role.is_string()) throw DataError(kPlace, where + " is " + role.type_name() + ", expected text.");
  static constexpr std::pair<std::string_view, std::string_view> kShareGptNames[] = {
      {"human", "user"}, {"gpt", "assistant"}, {"chatgpt", "assistant"}, {"model", "assistant"}};
  const std::string word = role.get<std::string>();
  for (const auto& [from, to] : kShareGptNames) {
    if (word == from) return std::string(to);
  }
  return word;
}

// What a message may carry beyond its text and would change what is right to train on.
void refuse_unsupported(const Json& message, const std::string& where) {
  for (const char* key : {"tool_calls", "function_call"}) {
    if (message.contains(key) && !message[key].is_null() && !message[key].empty()) {
      throw DataError(kPlace, where + " has '" + key + "': tool calls are not supported. Write the call as content.");
    }
  }
  if (message.contains("weight") && message["weight"] != 1) {
    throw DataError(kPlace, where + " has a 'weight' other than 1: leaving single turns untrained is not supported.");
  }
}

std::vector<Message> read_messages(const Json& record) {
  const std::string list = is_list(record, "messages") ? "messages" : "conversations";
  std::vector<Message> messages;
  if (const std::string system = read_optional_text(record, "system"); !system.empty()) {
    messages.push_back({"system", system});
  }
  for (size_t i = 0; i < record[list].size(); ++i) {
    const Json& message = record[list][i];
    const std::string where = list + "[" + std::to_string(i) + "]";
    if (!message.is_object()) throw DataError(kPlace, where + " is " + message.type_name() + ", expected an object.");
    const char* role = message.contains("role") ? "role" : "from";
    const char* content = message.contains("content") ? "content" : "value";
    if (!message.contains(role) || !message.contains(content)) {
      throw DataError(kPlace, where + " needs role and content (or from and value), has " + name_keys(message) + ".");
    }
    refuse_unsupported(message, where);
    messages.push_back(
        {read_role(message[role], where + "." + role), read_content(message[content], where + "." + content)});
  }
  if (messages.empty()) throw DataError(kPlace, "'" + list + "' is empty.");
  return messages;
}

// With a chat template the two halves are a conversation of one turn.
void as_conversation(Record& out, const std::string& system, std::string user) {
  if (!system.empty()) out.messages.push_back({"system", system});
  out.messages.push_back({"user", std::move(user)});
  out.messages.push_back({"assistant", out.completion});
}

void read_instruction(const Json& record, Record& out) {
  const std::string instruction = read_text(record, "instruction"), input = read_optional_text(record, "input");
  const std::string system = read_optional_text(record, "system");
  out.completion = read_text(record, "output");
  out.prompt = (system.empty() ? "" : system + "\n\n") + "### Instruction:\n" + instruction + "\n\n" +
               (input.empty() ? "" : "### Input:\n" + input + "\n\n") + "### Response:\n";
  as_conversation(out, system, input.empty() ? instruction : instruction + "\n\n" + input);
}

uint64_t hash_group(const Json& record, const std::string& group_field) {
  if (group_field.empty()) return 0;
  const auto value = record.find(group_field);
  if (value == record.end() || value->is_null() || value->is_structured()) {
    throw DataError(
        kPlace, "group field '" + group_field + "' is missing or no plain value; keys are " + name_keys(record) + ".");
  }
  const std::string key = value->is_string() ? value->get<std::string>() : value->dump();
  return std::max<uint64_t>(1, XXH3_64bits(key.data(), key.size()));
}

}  // namespace

Json parse_record(std::string_view line) {
  Json record = parse_json(line, kPlace, "record");
  if (!record.is_object()) {
    throw DataError(kPlace, std::string("the line is a JSON ") + record.type_name() +
                                ", expected one object a line. Turn a JSON array into lines with: jq -c '.[]' FILE.");
  }
  return record;
}

Format detect_format(const Json& record) {
  for (const Format form : kForms) {
    if (has_form(record, form)) return form;
  }
  throw DataError(kPlace, "no known form: keys are " + name_keys(record) +
                              ". Expected messages, conversations, instruction and output, prompt and completion, or "
                              "text.");
}

Record read_record(const Json& record, Format format, const std::string& group_field) {
  if (!has_form(record, format)) {
    throw DataError(kPlace, "expected a record of form " + std::string(name_of(format)) + ", this one is " +
                                std::string(name_of(detect_format(record))) + ". One file holds one form.");
  }
  Record out;
  out.format = format;
  out.group = hash_group(record, group_field);
  if (format == Format::chat) {
    out.messages = read_messages(record);
  } else if (format == Format::instruction) {
    read_instruction(record, out);
  } else if (format == Format::prompt_completion) {
    out.prompt = read_text(record, "prompt");
    out.completion = read_text(record, "completion");
    as_conversation(out, read_optional_text(record, "system"), out.prompt);
  } else {
    out.text = read_text(record, "text");
  }
  return out;
}

}  // namespace headrace::data
