// The small tokenizers of tests/golden/tokenizer and what the `tokenizers` library says about them.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/tokenizer/tokenizer.h"

namespace headrace::tokenizer {

inline const std::vector<std::string>& golden_names() {
  static const std::vector<std::string> names = {
      "gpt2",           "llama3",           "qwen2",        "smollm2",       "tekken",
      "llama2",         "mistral",          "gemma",        "metaspace",     "unknown_apart",
      "digit_runs",     "split_kept",       "prefix_space", "split_removed", "split_next",
      "split_previous", "split_contiguous", "split_empty",  "split_scripts"};
  return names;
}

inline std::string golden_folder(const std::string& name) {
  return std::string(HEADRACE_SOURCE_DIR) + "/tests/golden/tokenizer/" + name;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline Json read_golden(const std::string& name) {
  return parse_json(read_file(golden_folder(name)), "test.golden", name);
}

inline std::vector<int32_t> encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

}  // namespace headrace::tokenizer
