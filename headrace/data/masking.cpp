#include "headrace/data/masking.h"

#include <algorithm>

#include "headrace/base/errors.h"

namespace headrace::data {
namespace {

void append(Sample& sample, std::span<const int32_t> ids, bool trained) {
  sample.ids.insert(sample.ids.end(), ids.begin(), ids.end());
  sample.trained.resize(sample.ids.size(), trained ? 1 : 0);
}

void append_end(Sample& sample, const Codec& codec, bool wanted) {
  if (wanted && codec.end_of_text) append(sample, {&*codec.end_of_text, 1}, true);
}

void append_masked(Sample& sample, const Codec& codec, std::string_view text,
                   std::span<const std::pair<int64_t, int64_t>> ranges, LossOn loss_on) {
  const EncodedText encoded = codec.encode(text);
  sample.ids.insert(sample.ids.end(), encoded.ids.begin(), encoded.ids.end());
  const std::vector<uint8_t> trained = mark_trained(encoded.begins, ranges);
  sample.trained.insert(sample.trained.end(), trained.begin(), trained.end());
  if (loss_on == LossOn::all) std::fill(sample.trained.begin(), sample.trained.end(), uint8_t{1});
}

}  // namespace

std::vector<uint8_t> mark_trained(std::span<const int64_t> begins,
                                  std::span<const std::pair<int64_t, int64_t>> ranges) {
  std::vector<uint8_t> trained(begins.size(), 0);
  for (size_t i = 0; i < begins.size(); ++i) {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), begins[i],
                                        [](int64_t begin, const auto& range) { return begin < range.first; });
    trained[i] = after != ranges.begin() && begins[i] < std::prev(after)->second;
  }
  return trained;
}

Sample make_sample(const Record& record, const Codec& codec, LossOn loss_on, bool append_end_of_text) {
  Sample sample;
  sample.group = record.group;
  if (record.format == Format::text) {
    sample.is_text = true;
    append(sample, codec.prefix, true);
    append(sample, codec.encode(record.text).ids, true);
    append_end(sample, codec, append_end_of_text);
  } else if (codec.render) {
    const RenderedChat chat = codec.render(record.messages);
    append_masked(sample, codec, chat.text, chat.trained, loss_on);
  } else if (record.format == Format::chat) {
    throw DataError("data.render",
                    "a conversation, but the model has no chat template. Name one with --chat-template.");
  } else {
    const std::string text = record.prompt + record.completion;
    const std::pair<int64_t, int64_t> completion{static_cast<int64_t>(record.prompt.size()),
                                                 static_cast<int64_t>(text.size())};
    append(sample, codec.prefix, false);
    append_masked(sample, codec, text, {&completion, 1}, loss_on);
    append_end(sample, codec, append_end_of_text);
  }
  if (!sample.trained.empty()) sample.trained[0] = 0;
  return sample;
}

}  // namespace headrace::data
