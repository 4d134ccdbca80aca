// A Hugging Face folder small enough to train in a test: config.json and a byte-level tokenizer.json, no weights.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "headrace/base/json.h"

namespace headrace::support {

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// One code point as UTF-8; enough for U+0000 to U+07FF.
inline std::string utf8(int code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 0x3F))};
}

// The byte alphabet of byte-level BPE: printable Latin-1 stands for itself, the rest for U+0100 and on.
inline Json byte_vocabulary() {
  Json vocabulary = Json::object();
  int id = 0, next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    vocabulary[utf8(is_printable ? byte : next++)] = id++;
  }
  return vocabulary;
}

inline void write_tiny_folder(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const Json config = {{"architectures", {"LlamaForCausalLM"}},
                       {"model_type", "llama"},
                       {"vocab_size", 259},
                       {"hidden_size", 32},
                       {"intermediate_size", 64},
                       {"num_hidden_layers", 2},
                       {"num_attention_heads", 4},
                       {"num_key_value_heads", 2},
                       {"max_position_embeddings", 256},
                       {"rms_norm_eps", 1e-5},
                       {"hidden_act", "silu"},
                       {"tie_word_embeddings", true},
                       {"rope_theta", 10000.0},
                       {"initializer_range", 0.05},
                       {"bos_token_id", 256},
                       {"eos_token_id", 258}};
  write_file(folder / "config.json", config.dump());
  Json added = Json::array();
  int id = 256;
  for (const char* content : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    added.push_back({{"id", id++},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", added},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", byte_level},
                          {"post_processor", nullptr},
                          {"decoder", byte_level},
                          {"model",
                           {{"type", "BPE"},
                            {"dropout", nullptr},
                            {"unk_token", nullptr},
                            {"continuing_subword_prefix", nullptr},
                            {"end_of_word_suffix", nullptr},
                            {"fuse_unk", false},
                            {"byte_fallback", false},
                            {"vocab", byte_vocabulary()},
                            {"merges", Json::array()}}}};
  write_file(folder / "tokenizer.json", tokenizer.dump());
}

}  // namespace headrace::support
