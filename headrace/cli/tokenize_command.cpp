#include <charconv>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/cli/command.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/field_options.h"
#include "headrace/config/command_configs.h"
#include "headrace/tokenizer/tokenizer.h"

namespace headrace::cli {
namespace {

// {"ids": [1, 2, 3]} and a newline.
void print_ids(const std::vector<int32_t>& ids, std::string& line) {
  line = "{\"ids\": [";
  char digits[16];
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) line += ", ";
    line.append(digits, std::to_chars(digits, digits + sizeof digits, ids[i]).ptr);
  }
  line += "]}\n";
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) {
    throw IoError("cli.tokenize", "cannot write to", "standard output", errno);
  }
}

int run(const FieldOptions& fields) {
  config::TokenizeConfig config;
  fields.apply(config);
  if (config.model.empty()) throw ConfigError("cli.tokenize", "a model folder is needed: --model DIR.");
  const tokenizer::Tokenizer tokenizer = tokenizer::Tokenizer::load(config.model);
  std::ios::sync_with_stdio(false);
  std::string line, out;
  std::vector<int32_t> ids;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    ids.clear();
    try {
      tokenizer.encode(line, ids);
    } catch (const DataError& error) {
      throw DataError("cli.tokenize", "line " + std::to_string(number) + ": " + error.what());
    }
    print_ids(ids, out);
  }
  std::fflush(stdout);
  return kDone;
}

}  // namespace

Run add_tokenize(CLI::App& app) {
  const auto fields = std::make_shared<FieldOptions>();
  fields->add_to(app, config::TokenizeConfig{});
  return [fields](bool) { return run(*fields); };
}

}  // namespace headrace::cli
