// From the bytes of one file to documents: JSON lines, plain text, token ids. Each reads to the end of `bytes` and
// hands what it finds to the builder, which knows the policies. Blocking; the loading thread.
#pragma once

#include <memory>

#include "headrace/data/byte_source.h"
#include "headrace/data/corpus_builder.h"

namespace headrace::data {

// automatic: the first good record decides, the others must have its form.
void read_json_lines(std::unique_ptr<ByteSource> bytes, Format format, CorpusBuilder& builder);

// CorpusConfig::text_documents says what a document is.
void read_plain_text(std::unique_ptr<ByteSource> bytes, CorpusBuilder& builder);

// Little-endian ids without a header. A document ends with each end-of-text token; a file without any is one document.
// bin: two bytes an id when the vocabulary fits, unless every second of the first values is zero; else four.
void read_token_file(std::unique_ptr<ByteSource> bytes, Format format, CorpusBuilder& builder);

// By the config's format, or by `path`'s ending. Calls begin_file. Throws ConfigError for an ending it does not know.
void read_file(const std::string& path, std::unique_ptr<ByteSource> bytes, CorpusBuilder& builder);

}  // namespace headrace::data
