// A tokenizer and ChatML template small enough to check by eye: a byte is its own id, three specials follow.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/data/codec.h"
#include "headrace/data/corpus.h"
#include "tests/support/temp_folder.h"

namespace headrace::data {

inline constexpr int32_t kStart = 256, kEnd = 257, kEndOfText = 258;

inline EncodedText toy_encode(std::string_view text) {
  static constexpr std::pair<std::string_view, int32_t> kSpecials[] = {
      {"<|im_start|>", kStart}, {"<|im_end|>", kEnd}, {"<eot>", kEndOfText}};
  EncodedText out;
  for (size_t at = 0; at < text.size();) {
    out.begins.push_back(static_cast<int64_t>(at));
    size_t length = 1;
    int32_t id = static_cast<unsigned char>(text[at]);
    for (const auto& [name, special] : kSpecials) {
      if (text.substr(at).starts_with(name)) {
        length = name.size();
        id = special;
      }
    }
    out.ids.push_back(id);
    at += length;
  }
  return out;
}

inline RenderedChat toy_render(std::span<const Message> messages) {
  RenderedChat chat;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.role != "user" && message.role != "assistant" && message.role != "system") {
      throw DataError("toy.render", "message " + std::to_string(i) + ": role '" + message.role + "' is unknown.");
    }
    chat.text += "<|im_start|>" + message.role + "\n";
    const auto begin = static_cast<int64_t>(chat.text.size());
    chat.text += message.content + "<|im_end|>";
    if (message.role == "assistant") chat.trained.emplace_back(begin, static_cast<int64_t>(chat.text.size()));
    chat.text += "\n";
  }
  return chat;
}

inline Codec toy_codec(bool with_template = true) {
  Codec codec;
  codec.encode = toy_encode;
  if (with_template) codec.render = toy_render;
  codec.end_of_text = kEndOfText;
  codec.vocabulary = 259;
  return codec;
}

// The tokens with a mask of one value as text, specials by name: what a test compares.
inline std::string spell(const std::vector<int32_t>& ids, const std::vector<uint8_t>& trained, uint8_t wanted = 1) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (trained[i] != wanted) continue;
    if (ids[i] == kStart) text += "[S]";
    if (ids[i] == kEnd) text += "[E]";
    if (ids[i] == kEndOfText) text += "[T]";
    if (ids[i] < 256) text += static_cast<char>(ids[i]);
  }
  return text;
}

// A temporary folder that files are written into.
class DataFolder : public TempFolder {
 public:
  std::string write(const std::string& name, std::string_view contents) const {
    std::ofstream(file(name), std::ios::binary) << contents;
    return file(name);
  }
  std::string file(const std::string& name) const { return (*this / name).native(); }
};

// Runs `act` and gives the text of the error it throws; empty when it throws none.
template <typename ErrorType, typename Act>
std::string error_of(Act&& act) {
  try {
    act();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

// Documents "aaaa...", "bbbb..." of the given lengths in tokens, as trained text or as fully trained conversations.
inline std::shared_ptr<const Corpus> corpus_of(const DataFolder& folder, const std::vector<int64_t>& lengths,
                                               bool is_text, const std::string& name = "corpus.jsonl") {
  std::string lines;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::string body(static_cast<size_t>(lengths[i]), static_cast<char>('a' + i % 26));
    if (is_text) lines += R"({"text": ")" + body + "\"}\n";
    // The prompt's single token is not trained, which makes conversations of these.
    if (!is_text) lines += R"({"prompt": ")" + body.substr(0, 1) + R"(", "completion": ")" + body.substr(1) + "\"}\n";
  }
  CorpusConfig config;
  config.files = {folder.write(name, lines)};
  config.append_end_of_text = false;
  config.max_length = 1 << 20;
  return load_corpus(config, toy_codec(false));
}

}  // namespace headrace::data
