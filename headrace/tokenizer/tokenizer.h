// A Hugging Face tokenizer.json, token-identical to the `tokenizers` library: byte-level BPE (GPT-2, Llama 3, Qwen,
// SmolLM2) and BPE with byte fallback (Llama 2, Mistral). What a file asks for and this room does not implement is
// refused by name, never approximated. Const methods may be called from any thread at once; nothing here blocks
// except on the file read by load().
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/tokenizer/decode_state.h"

namespace headrace::tokenizer {

class TokenizerParts;  // the compiled stages, tokenizer_parts.h

class Tokenizer {
 public:
  // `begins[i]`..`ends[i]` are the bytes of the text as given that token i came from. Where normalization rewrote
  // characters, every token of the rewritten stretch names the whole stretch; a prefix that the tokenizer added
  // ("▁", " ") has an empty range.
  struct Encoding {
    std::vector<int32_t> ids;
    std::vector<uint32_t> begins;  // [bytes]
    std::vector<uint32_t> ends;    // [bytes]
  };

  // Reads `path`, a model folder or its tokenizer.json. Throws IoError when it cannot be read, DataError when it is
  // wrong, over 256 MiB, or asks for something that is not implemented.
  static Tokenizer load(const std::filesystem::path& path);

  // The same from memory; `source` names the text in errors.
  static Tokenizer from_json(std::string_view text, std::string_view source);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Appends the ids of `text`. Added and special tokens spelt in the text are recognised; none are added.
  // Throws DataError naming the byte when `text` is not valid UTF-8 (nothing is replaced silently; `ids` is then
  // unchanged) and when a pre-tokenizer's regex exceeds its match limit.
  void encode(std::string_view text, std::vector<int32_t>& ids) const;

  // The same ids, with the bytes each came from. The text must be under 4 GiB.
  Encoding encode_with_offsets(std::string_view text) const;

  // The text of `ids`; bytes that are not UTF-8 become U+FFFD as in the `tokenizers` library. With `skip_special` the
  // special tokens are left out. An id without a token (vocabularies are often padded) adds nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  // The id of the token spelt exactly so in the file ("Ġthe", "<|im_end|>").
  std::optional<int32_t> token_to_id(std::string_view token) const;
  // The spelling in the file; empty for an id without a token.
  std::string_view id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;
  // Largest id + 1, added tokens included.
  int64_t vocabulary_size() const;
  // What the file's post-processor puts before a single text (for example Llama's <s>); encode() never adds it.
  std::span<const int32_t> prefix_special_ids() const;

 private:
  friend class StreamDecoder;
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  std::unique_ptr<const TokenizerParts> parts_;
};

// Text of a growing list of ids, piece by piece: the pieces put together are decode() of all ids. One thread; the
// tokenizer must outlive it.
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special);
  // The text that `id` completes and that was not yet given out: whole UTF-8 characters only, often empty in the
  // middle of one.
  std::string push(int32_t id);
  // What is left: U+FFFD for a character that never became complete. The decoder then starts anew.
  std::string finish();

 private:
  const TokenizerParts& parts_;
  bool skip_special_;
  DecodeState state_;
};

}  // namespace headrace::tokenizer
