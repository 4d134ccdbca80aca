#include "headrace/data/corpus_builder.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/data/fingerprint.h"

namespace headrace::data {
namespace {

constexpr int64_t kReportEveryBytes = 1 << 20;

uint64_t own_group(size_t document) {
  const auto number = static_cast<uint64_t>(document);
  return XXH3_64bits(&number, sizeof number);
}

int64_t count_trained(std::span<const uint8_t> trained) { return std::count(trained.begin(), trained.end(), 1); }

std::string fingerprint_of(const Corpus& corpus) {
  Fingerprint fingerprint;
  for (const auto block : corpus.tokens().blocks()) fingerprint.add_bytes(std::as_bytes(block));
  for (const Corpus::Document& document : corpus.documents()) {
    fingerprint.add(document.begin);
    fingerprint.add(document.end);
    fingerprint.add(static_cast<int64_t>(document.group));
    fingerprint.add((document.is_text ? 1 : 0) + (document.whole_file ? 2 : 0));
  }
  return fingerprint.hex();
}

}  // namespace

CorpusBuilder::CorpusBuilder(const CorpusConfig& config, const Codec& codec, const OnProgress& on_progress,
                             int64_t total_bytes)
    : config_(config), codec_(codec), on_progress_(on_progress), total_bytes_(total_bytes) {
  corpus_->pad_ = codec.pad.value_or(codec.end_of_text.value_or(0));
}

void CorpusBuilder::begin_file(const std::string& path) {
  bytes_before_ += bytes_consumed_;
  bytes_consumed_ = 0;
  corpus_->files_.push_back(path);
  ++corpus_->coverage_.files;
}

std::string CorpusBuilder::where(int64_t line) const { return corpus_->files_.back() + ":" + std::to_string(line); }

void CorpusBuilder::warn(Reason reason, int64_t line, std::string_view text) {
  if (warned_[reason]++ < kMaxNamed) corpus_->coverage_.warnings.push_back(where(line) + ": " + std::string(text));
}

void CorpusBuilder::bad_line(int64_t line, std::string_view text) {
  if (!config_.skip_bad_lines) throw DataError("data.read", where(line) + ": " + std::string(text));
  ++corpus_->coverage_.bad_lines;
  warn(kBadLine, line, text);
}

// Brings a sample to max_length or says that it stays out.
bool CorpusBuilder::fit(Sample& sample, int64_t line) {
  const auto length = static_cast<int64_t>(sample.ids.size());
  if (sample.is_text || length <= config_.max_length) return true;
  const std::string text = std::to_string(length) + " tokens, max_length is " + std::to_string(config_.max_length);
  if (config_.over_long == OverLong::error) {
    throw DataError("data.read", where(line) + ": " + text + ". Raise --max-length, or use --over-long truncate.");
  }
  if (config_.over_long == OverLong::skip) {
    ++corpus_->coverage_.too_long;
    warn(kTooLong, line, text + ": left out.");
    return false;
  }
  sample.ids.resize(config_.max_length);
  sample.trained.resize(config_.max_length);
  ++corpus_->coverage_.truncated;
  warn(kTruncated, line, text + ": cut at its end.");
  return true;
}

void CorpusBuilder::add(Sample&& sample, int64_t line) {
  if (!fit(sample, line)) return;
  const int64_t trained = count_trained(sample.trained);
  if (trained == 0) {
    ++corpus_->coverage_.untrained;
    warn(kUntrained, line, "no token to learn: left out.");
    return;
  }
  const int64_t begin = corpus_->tokens_.size();
  corpus_->tokens_.append(sample.ids, sample.trained);
  const uint64_t group = sample.group != 0 ? sample.group : own_group(corpus_->documents_.size());
  const auto file = static_cast<int32_t>(corpus_->files_.size()) - 1;
  corpus_->documents_.push_back({begin, corpus_->tokens_.size(), line, group, file, sample.is_text, sample.whole_file});
  corpus_->coverage_.trained_tokens += trained;
  corpus_->coverage_.tokens += static_cast<int64_t>(sample.ids.size());
}

void CorpusBuilder::begin_text(int64_t line) {
  open_ = {corpus_->tokens_.size(),
           0,
           line,
           own_group(corpus_->documents_.size()),
           static_cast<int32_t>(corpus_->files_.size()) - 1,
           true,
           false};
}

void CorpusBuilder::extend_text(std::span<const int32_t> ids) {
  if (ids.empty()) return;
  static constexpr uint8_t kUntrainedFlag = 0;
  if (corpus_->tokens_.size() == open_.begin) {
    corpus_->tokens_.append(ids.first(1), {&kUntrainedFlag, 1});
    ids = ids.subspan(1);
  }
  const std::vector<uint8_t> trained(ids.size(), 1);
  corpus_->tokens_.append(ids, trained);
}

void CorpusBuilder::end_text(bool whole_file) {
  open_.end = corpus_->tokens_.size();
  open_.whole_file = whole_file;
  if (open_.length() < 2) {  // a lone token stays in the store and belongs to no document
    ++corpus_->coverage_.untrained;
    warn(kUntrained, open_.line, "no token to learn: left out.");
    return;
  }
  corpus_->documents_.push_back(open_);
  corpus_->coverage_.tokens += open_.length();
  corpus_->coverage_.trained_tokens += open_.length() - 1;
}

void CorpusBuilder::progress(int64_t bytes_consumed) {
  bytes_consumed_ = bytes_consumed;
  const int64_t bytes = bytes_before_ + bytes_consumed_;
  if (!on_progress_ || bytes - bytes_reported_ < kReportEveryBytes) return;
  bytes_reported_ = bytes;
  on_progress_({corpus_->files_.back(), bytes, total_bytes_, static_cast<int64_t>(corpus_->documents_.size()),
                corpus_->tokens_.size()});
}

std::shared_ptr<const Corpus> CorpusBuilder::finish() {
  static constexpr std::string_view kWhat[kReasons] = {"bad lines", "documents over max_length left out",
                                                       "documents without a token to learn",
                                                       "documents cut at max_length"};
  Coverage& coverage = corpus_->coverage_;
  for (int reason = 0; reason < kReasons; ++reason) {
    if (warned_[reason] <= kMaxNamed) continue;
    coverage.warnings.push_back(std::to_string(warned_[reason]) + " " + std::string(kWhat[reason]) +
                                " in all, the first " + std::to_string(kMaxNamed) + " are named.");
  }
  if (corpus_->documents_.empty()) {
    throw DataError("data.load", "nothing to learn in " + corpus_->files_.front() +
                                     (corpus_->files_.size() > 1 ? " and the other files" : "") + ": " +
                                     std::to_string(coverage.bad_lines) + " bad lines, " +
                                     std::to_string(coverage.too_long) + " records too long, " +
                                     std::to_string(coverage.untrained) + " without a token to learn." +
                                     (coverage.warnings.empty() ? "" : " First: " + coverage.warnings.front()));
  }
  coverage.documents = static_cast<int64_t>(corpus_->documents_.size());
  coverage.memory_bytes =
      corpus_->tokens_.memory_bytes() + static_cast<int64_t>(corpus_->documents_.capacity() * sizeof(Corpus::Document));
  corpus_->fingerprint_ = fingerprint_of(*corpus_);
  return corpus_;
}

}  // namespace headrace::data
