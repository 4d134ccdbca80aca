// Admits samples to a corpus: cuts or refuses long ones, leaves out those that teach nothing, counts everything.
// Owned by the loading thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headrace/data/corpus.h"

namespace headrace::data {

class CorpusBuilder {
 public:
  static constexpr int64_t kMaxNamed = 5;  // records named in the warnings of one reason

  // `config` and `codec` must outlive the builder. `total_bytes` is for progress only.
  CorpusBuilder(const CorpusConfig& config, const Codec& codec, const OnProgress& on_progress, int64_t total_bytes);

  const CorpusConfig& config() const { return config_; }
  const Codec& codec() const { return codec_; }

  void begin_file(const std::string& path);
  const std::string& file() const { return corpus_->files().back(); }
  // A record that cannot be used: throws DataError "<file>:<line>: <text>", or counts it with skip_bad_lines.
  void bad_line(int64_t line, std::string_view text);
  // A document of any form. Throws DataError naming it when it is too long and over_long = error.
  void add(Sample&& sample, int64_t line);

  // A long text piece by piece: begin, any number of extensions, end. Every token but the first is trained.
  void begin_text(int64_t line);
  void extend_text(std::span<const int32_t> ids);
  void end_text(bool whole_file);

  // Called by readers after each record or block; reports when enough happened. May throw what on_progress throws.
  void progress(int64_t bytes_consumed);
  // Throws DataError when there is nothing to learn.
  std::shared_ptr<const Corpus> finish();

 private:
  enum Reason { kBadLine, kTooLong, kUntrained, kTruncated, kReasons };
  void warn(Reason reason, int64_t line, std::string_view text);
  bool fit(Sample& sample, int64_t line);
  std::string where(int64_t line) const;

  const CorpusConfig& config_;
  const Codec& codec_;
  const OnProgress& on_progress_;
  const int64_t total_bytes_;
  std::shared_ptr<Corpus> corpus_ = std::make_shared<Corpus>();
  Corpus::Document open_{};  // of begin_text
  std::array<int64_t, kReasons> warned_{};
  int64_t bytes_before_ = 0, bytes_consumed_ = 0, bytes_reported_ = 0;
};

}  // namespace headrace::data
