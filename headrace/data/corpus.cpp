#include "headrace/data/corpus.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/data/corpus_builder.h"
#include "headrace/data/readers.h"

namespace headrace::data {
namespace {

Format format_by_name(const std::string& path) {
  const std::string_view name = without_packing(path);
  const auto ends_with = [&](std::initializer_list<std::string_view> endings) {
    for (const std::string_view ending : endings) {
      if (name.ends_with(ending)) return true;
    }
    return false;
  };
  if (ends_with({".jsonl", ".ndjson", ".json"})) return Format::automatic;
  if (ends_with({".txt", ".text", ".md"})) return Format::plain;
  if (ends_with({".bin"})) return Format::bin;
  throw ConfigError("data.load", "cannot tell the form of " + path +
                                     ": known endings are .jsonl, .ndjson, .json, .txt, .text, .md and .bin, with or "
                                     "without .gz or .zst. Name the form with --data-format.");
}

int64_t size_on_disk(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

void check(const CorpusConfig& config) {
  if (config.files.empty()) throw ConfigError("data.load", "no data files. Name some with --data.");
  if (config.max_length < 2 || config.max_length > (1 << 24)) {
    throw ConfigError("data.load", "max_length is " + std::to_string(config.max_length) +
                                       ", allowed is 2 to 16777216: one token to read and one to predict.");
  }
  if (config.max_line_bytes < 1) throw ConfigError("data.load", "max_line_bytes must be at least 1.");
}

}  // namespace

void read_file(const std::string& path, std::unique_ptr<ByteSource> bytes, CorpusBuilder& builder) {
  Format format = builder.config().format;
  if (format == Format::automatic) format = format_by_name(path);
  builder.begin_file(path);
  switch (format) {
    case Format::plain:
      return read_plain_text(std::move(bytes), builder);
    case Format::bin:
    case Format::bin16:
    case Format::bin32:
      return read_token_file(std::move(bytes), format, builder);
    default:
      return read_json_lines(std::move(bytes), format, builder);
  }
}

std::shared_ptr<const Corpus> load_corpus(const CorpusConfig& config, const Codec& codec,
                                          const OnProgress& on_progress) {
  check(config);
  int64_t total_bytes = 0;
  for (const std::string& path : config.files) total_bytes += size_on_disk(path);
  CorpusBuilder builder(config, codec, on_progress, total_bytes);
  for (const std::string& path : config.files) read_file(path, open_bytes(path), builder);
  return builder.finish();
}

Sample Corpus::sample(int64_t document) const {
  const Document& facts = documents_.at(document);
  Sample sample;
  for (int64_t i = facts.begin; i < facts.end; ++i) {
    sample.ids.push_back(tokens_.id(i));
    sample.trained.push_back(tokens_.is_trained(i) ? 1 : 0);
  }
  sample.file = facts.file;
  sample.line = facts.line;
  sample.group = facts.group;
  sample.is_text = facts.is_text;
  sample.whole_file = facts.whole_file;
  return sample;
}

std::string Corpus::where(int64_t document) const {
  const Document& facts = documents_.at(document);
  return files_[facts.file] + ":" + std::to_string(facts.line);
}

Json Coverage::to_json() const {
  return {{"files", files},
          {"documents", documents},
          {"tokens", tokens},
          {"trained_tokens", trained_tokens},
          {"truncated", truncated},
          {"too_long", too_long},
          {"untrained", untrained},
          {"bad_lines", bad_lines},
          {"memory_bytes", memory_bytes}};
}

}  // namespace headrace::data
