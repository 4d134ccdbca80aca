#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/cli/command.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/field_options.h"
#include "headrace/config/command_configs.h"
#include "headrace/os/interrupt.h"
#include "headrace/train/generate.h"
#include "headrace/train/load.h"

namespace headrace::cli {
namespace {

std::vector<int64_t> prompt_ids(const config::GenerateConfig& config, const train::TextTools& text) {
  std::vector<int32_t> ids;
  if (config.chat) {
    std::vector<tokenizer::Message> messages;
    if (!config.system.empty()) messages.push_back({"system", config.system});
    messages.push_back({"user", config.prompt});
    text.tokenizer().encode(text.chat_template().render(messages, true).text, ids);
  } else {
    const auto prefix = text.tokenizer().prefix_special_ids();
    ids.assign(prefix.begin(), prefix.end());
    text.tokenizer().encode(config.prompt, ids);
  }
  return {ids.begin(), ids.end()};
}

std::vector<int64_t> stop_ids(const config::GenerateConfig& config, const train::TextTools& text,
                              const config::ModelShape& shape) {
  std::vector<int64_t> ids = shape.eos_ids;
  if (!config.chat) return ids;
  if (const auto id = text.tokenizer().token_to_id(text.chat_template().end_of_turn())) ids.push_back(*id);
  return ids;
}

int run(const FieldOptions& fields, bool json) {
  config::GenerateConfig config;
  fields.apply(config);
  if (config.model.empty()) throw ConfigError("cli.generate", "a model folder is needed: --model DIR.");
  if (config.prompt.empty()) throw ConfigError("cli.generate", "a prompt is needed: --prompt TEXT.");
  const os::InterruptGuard interrupts;
  train::set_compute_threads(config.threads);
  const train::LoadedModel loaded = train::load_pretrained(config.model);
  const train::TextTools text(config.model, config.chat_template, loaded.model->shape().vocab_size);
  const train::GenerationConfig generation{
      .sampling = {.temperature = config.temperature, .top_k = config.top_k, .top_p = config.top_p},
      .max_new_tokens = config.max_new_tokens,
      .stop_ids = stop_ids(config, text, loaded.model->shape()),
      .seed = static_cast<uint64_t>(config.seed)};
  tokenizer::StreamDecoder decoder(text.tokenizer(), /*skip_special=*/true);
  std::string answer;
  const auto show = [&](const std::string& piece) {
    answer += piece;
    if (json) return;
    std::fputs(piece.c_str(), stdout);
    std::fflush(stdout);
  };
  train::generate(*loaded.model, loaded.blocks(), prompt_ids(config, text), generation, [&](int64_t id) {
    show(decoder.push(static_cast<int32_t>(id)));
    return !os::InterruptGuard::requested();
  });
  show(decoder.finish());
  std::printf("%s\n", json ? Json{{"text", answer}}.dump().c_str() : "");
  return os::InterruptGuard::requested() ? kInterrupted : kDone;
}

}  // namespace

Run add_generate(CLI::App& app) {
  const auto fields = std::make_shared<FieldOptions>();
  fields->add_to(app, config::GenerateConfig{});
  return [fields](bool json) { return run(*fields, json); };
}

}  // namespace headrace::cli
