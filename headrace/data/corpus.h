// All documents of a run, tokenised once and kept in host memory: 4 bytes a token plus about 40 a document.
// Immutable after load_corpus: safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/data/codec.h"
#include "headrace/data/sample.h"
#include "headrace/data/token_store.h"

namespace headrace::data {

enum class Format {
  automatic,          // from the file's name, and for JSON lines from the first record
  chat,               // messages [{role, content}] or conversations [{from, value}]
  instruction,        // instruction, input, output
  prompt_completion,  // prompt, completion
  text,               // {"text"}
  plain,              // .txt
  bin,                // token ids, two bytes each when the vocabulary fits 65536, else four
  bin16,
  bin32,
};
enum class LossOn { assistant, all };
// Documents longer than max_length; text is exempt: it is read in pieces and loses nothing.
enum class OverLong { truncate, skip, error };
enum class TextDocuments { file, paragraphs, lines };  // what one document of a .txt is

// From the words of the command line ("auto", "sharegpt" for chat, "prompt" ...); throws ConfigError listing them.
Format parse_format(std::string_view word);
LossOn parse_loss_on(std::string_view word);
OverLong parse_over_long(std::string_view word);
TextDocuments parse_text_documents(std::string_view word);
std::string_view name_of(Format format);

struct CorpusConfig {
  std::vector<std::string> files;     // .jsonl .json .ndjson .txt .md .text .bin; text forms also .gz and .zst
  Format format = Format::automatic;  // of every file
  LossOn loss_on = LossOn::assistant;
  OverLong over_long = OverLong::truncate;
  TextDocuments text_documents = TextDocuments::file;
  int64_t max_length = 1024;       // [tokens] >= 2
  bool append_end_of_text = true;  // to plain documents, when the tokenizer has such a token
  bool skip_bad_lines = false;     // count bad records instead of failing at the first
  std::string group_field;         // records with equal values of this key stay on one side of the split
  int64_t max_line_bytes = 64 << 20;
};

// What became of the files' records. Everything that was not used is counted and the first few are named.
struct Coverage {
  int64_t files = 0;
  int64_t documents = 0;       // kept
  int64_t tokens = 0;          // of the kept documents
  int64_t trained_tokens = 0;  // targets of the kept documents
  int64_t truncated = 0;       // kept, cut at max_length
  int64_t too_long = 0;        // left out: over_long = skip
  int64_t untrained = 0;       // left out: no token to learn
  int64_t bad_lines = 0;       // left out: skip_bad_lines
  int64_t memory_bytes = 0;
  std::vector<std::string> warnings;  // one a reason and record, first kMaxNamed of each reason, then their count
  Json to_json() const;
};

struct Progress {
  std::string file;
  int64_t bytes = 0, total_bytes = 0;  // of the files as they lie on disk
  int64_t documents = 0, tokens = 0;
};
// Called now and then by the loading thread; may throw to stop loading.
using OnProgress = std::function<void(const Progress&)>;

class Corpus {
 public:
  struct Document {
    int64_t begin, end;  // tokens in the store
    int64_t line;
    uint64_t group;
    int32_t file;
    bool is_text, whole_file;
    int64_t length() const { return end - begin; }
  };

  const std::vector<std::string>& files() const { return files_; }
  const std::vector<Document>& documents() const { return documents_; }
  const TokenStore& tokens() const { return tokens_; }
  const Coverage& coverage() const { return coverage_; }
  // The document with its tokens, copied.
  Sample sample(int64_t document) const;
  // "chat.jsonl:17", for messages.
  std::string where(int64_t document) const;
  // 32 hex digits of XXH3-128 over tokens, masks, document bounds and groups: equal means the same training data.
  const std::string& fingerprint() const { return fingerprint_; }
  int32_t pad() const { return pad_; }

 private:
  friend class CorpusBuilder;
  std::vector<std::string> files_;
  std::vector<Document> documents_;
  TokenStore tokens_;
  Coverage coverage_;
  std::string fingerprint_;
  int32_t pad_ = 0;
};

// Reads and tokenises every file in the calling thread. Throws DataError naming file and line, IoError, ConfigError
// (no files, max_length, unknown format), and DataError when nothing to learn is left.
std::shared_ptr<const Corpus> load_corpus(const CorpusConfig& config, const Codec& codec,
                                          const OnProgress& on_progress = {});

}  // namespace headrace::data
