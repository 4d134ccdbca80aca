// What a tokenizer.json compiles to: the stages in the order in which a text passes them. Const once made; the working
// memory of running calls is kept in a pool, one set for each call at a time.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "headrace/tokenizer/added_tokens.h"
#include "headrace/tokenizer/bpe.h"
#include "headrace/tokenizer/decoder.h"
#include "headrace/tokenizer/normalizer.h"
#include "headrace/tokenizer/pre_tokenizer.h"
#include "headrace/tokenizer/vocabulary.h"

namespace headrace::tokenizer {

// Everything one encode() writes to but its result.
struct EncodeMemory {
  Normalizer::Memory normalizer;
  PreTokenizer::Memory pre_tokenizer;
  Bpe::Memory bpe;
  std::vector<AddedTokens::Cut> cuts;
  std::vector<AddedTokens::Cut> normalized_cuts;
};

class TokenizerParts {
 public:
  // Throws DataError.
  TokenizerParts(const Json& file, std::string_view source);

  // A set of working memory that nobody else uses, given back by return_memory().
  std::unique_ptr<EncodeMemory> take_memory() const;
  void return_memory(std::unique_ptr<EncodeMemory> memory) const;

  Vocabulary vocabulary;
  Normalizer normalizer;
  AddedTokens added;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  Decoder decoder;
  std::vector<int32_t> prefix_special_ids;

 private:
  void read_post_processor(const Json& value, const std::string& where, std::string_view source, int depth);

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<EncodeMemory>> pool_;
};

}  // namespace headrace::tokenizer
