// What the data room needs of a model's tokenizer and chat template, as function objects, so that tests need neither.
// The functions must be callable from any one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::tokenizer {
class Tokenizer;
class ChatTemplate;
}  // namespace headrace::tokenizer

namespace headrace::data {

struct Message {
  std::string role;  // "system", "user", "assistant", ...
  std::string content;
};

struct EncodedText {
  std::vector<int32_t> ids;
  std::vector<int64_t> begins;  // [ids] byte of the text at which each token begins
};

struct RenderedChat {
  std::string text;
  std::vector<std::pair<int64_t, int64_t>>
      trained;  // [begin, end) bytes of what the assistant wrote, end of turn included
};

struct Codec {
  // Special tokens written out in the text are recognised, none are added.
  std::function<EncodedText(std::string_view text)> encode;
  // Empty when the model has no chat template: then chat records are refused.
  std::function<RenderedChat(std::span<const Message> messages)> render;
  std::vector<int32_t> prefix;         // put before every plain document (Llama's <s>); most tokenizers have none
  std::optional<int32_t> end_of_text;  // put after every plain document
  std::optional<int32_t> pad;          // for padded layouts; end_of_text or 0 serves when absent
  int64_t vocabulary = 0;              // ids are below this: .bin files are checked against it
};

// `chat_template` may be null. Both must outlive the codec. The end of text is the tokenizer's own separator of
// documents: <|endoftext|>, <|end_of_text|> or </s>, the first that is a special token.
Codec codec_from(const tokenizer::Tokenizer& tokenizer, const tokenizer::ChatTemplate* chat_template);

}  // namespace headrace::data
