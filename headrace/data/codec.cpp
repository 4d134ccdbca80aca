#include "headrace/data/codec.h"

#include "headrace/tokenizer/chat_template.h"
#include "headrace/tokenizer/tokenizer.h"

namespace headrace::data {
namespace {

RenderedChat render(const tokenizer::ChatTemplate& chat_template, std::span<const Message> messages) {
  std::vector<tokenizer::Message> copies;
  copies.reserve(messages.size());
  for (const Message& message : messages) copies.push_back({message.role, message.content});
  tokenizer::ChatTemplate::Rendering rendering = chat_template.render(copies, false);
  RenderedChat chat;
  chat.text = std::move(rendering.text);
  for (const auto& [begin, end] : rendering.trained) {
    chat.trained.emplace_back(static_cast<int64_t>(begin), static_cast<int64_t>(end));
  }
  return chat;
}

}  // namespace

Codec codec_from(const tokenizer::Tokenizer& tokenizer, const tokenizer::ChatTemplate* chat_template) {
  Codec codec;
  codec.encode = [&tokenizer](std::string_view text) {
    tokenizer::Tokenizer::Encoding encoding = tokenizer.encode_with_offsets(text);
    return EncodedText{std::move(encoding.ids), {encoding.begins.begin(), encoding.begins.end()}};
  };
  if (chat_template) {
    codec.render = [chat_template](std::span<const Message> messages) { return render(*chat_template, messages); };
  }
  const auto prefix = tokenizer.prefix_special_ids();
  codec.prefix.assign(prefix.begin(), prefix.end());
  for (const std::string_view name : {"<|endoftext|>", "<|end_of_text|>", "</s>"}) {
    const std::optional<int32_t> id = tokenizer.token_to_id(name);
    if (!id || !tokenizer.is_special(*id)) continue;
    codec.end_of_text = id;
    break;
  }
  codec.vocabulary = tokenizer.vocabulary_size();
  return codec;
}

}  // namespace headrace::data
