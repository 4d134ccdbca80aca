#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/data/line_reader.h"
#include "headrace/data/masking.h"
#include "headrace/data/readers.h"
#include "headrace/data/record.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::data {
namespace {

// A whole file is tokenised in parts of about this size, cut where a line begins with a letter or sign, so that memory
// stays bounded: no pre-tokenizer joins what stands on two sides of such a place.
constexpr size_t kPartBytes = 1 << 20;
constexpr size_t kMostPartBytes = 16 << 20;  // cut before any line then

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\v\f") == std::string_view::npos; }

class PlainTextReader {
 public:
  PlainTextReader(std::unique_ptr<ByteSource> bytes, CorpusBuilder& builder)
      : builder_(builder), config_(builder.config()), lines_(std::move(bytes), config_.max_line_bytes) {}

  void read_file() {
    builder_.begin_text(1);
    bool after_blank = true;
    while (const auto line = next_line()) {
      if (has_lines_) part_ += '\n';
      has_lines_ = true;
      const bool starts_word = !line->empty() && !is_space(line->front()) && !after_blank;
      if ((part_.size() >= kPartBytes && starts_word) || part_.size() >= kMostPartBytes) flush();
      part_ += *line;
      after_blank = is_blank(*line);
    }
    flush();
    const auto end = builder_.codec().end_of_text;
    if (any_tokens_ && end && config_.append_end_of_text) builder_.extend_text({&*end, 1});
    builder_.end_text(true);
  }

  void read_paragraphs() {
    int64_t first_line = 1;
    while (const auto line = next_line()) {
      if (is_blank(*line)) {
        add_document(first_line);
        continue;
      }
      if (part_.empty()) first_line = lines_.number();
      if (!part_.empty()) part_ += '\n';
      part_ += *line;
    }
    add_document(first_line);
  }

  void read_lines() {
    while (const auto line = next_line()) {
      if (is_blank(*line)) continue;
      part_ = *line;
      add_document(lines_.number());
    }
  }

 private:
  // The next good line.
  std::optional<std::string_view> next_line() {
    while (const auto line = lines_.next()) {
      builder_.progress(lines_.bytes_consumed());
      if (lines_.too_long()) {
        builder_.bad_line(lines_.number(), "longer than " + std::to_string(config_.max_line_bytes) + " bytes.");
      } else if (tokenizer::first_invalid_utf8(*line) != line->size()) {
        builder_.bad_line(lines_.number(), "not UTF-8. Convert the file, for example with iconv.");
      } else {
        return line;
      }
    }
    return std::nullopt;
  }

  void flush() {
    if (part_.empty()) return;
    if (!any_tokens_) builder_.extend_text(builder_.codec().prefix);
    any_tokens_ = true;
    builder_.extend_text(builder_.codec().encode(part_).ids);
    part_.clear();
  }

  void add_document(int64_t line) {
    if (part_.empty()) return;
    Record record;
    record.format = Format::text;
    record.text = std::exchange(part_, {});
    builder_.add(make_sample(record, builder_.codec(), config_.loss_on, config_.append_end_of_text), line);
  }

  CorpusBuilder& builder_;
  const CorpusConfig& config_;
  LineReader lines_;
  std::string part_;
  bool has_lines_ = false, any_tokens_ = false;
};

}  // namespace

void read_plain_text(std::unique_ptr<ByteSource> bytes, CorpusBuilder& builder) {
  PlainTextReader reader(std::move(bytes), builder);
  switch (builder.config().text_documents) {
    case TextDocuments::file:
      return reader.read_file();
    case TextDocuments::paragraphs:
      return reader.read_paragraphs();
    case TextDocuments::lines:
      return reader.read_lines();
  }
}

}  // namespace headrace::data
