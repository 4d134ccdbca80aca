#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/checkpoint/export.h"
#include "headrace/cli/command.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/field_options.h"
#include "headrace/config/command_configs.h"
#include "headrace/store/reader.h"
#include "headrace/train/checkpointing_resume.h"
#include "headrace/train/load.h"

namespace headrace::cli {
namespace {

train::LoadedModel load_checkpoint(const config::ExportConfig& config) {
  const auto say = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  const std::optional<store::CheckpointInfo> found = train::find_checkpoint(config.checkpoint, say);
  if (!found) throw ConfigError("cli.export", config.checkpoint + " holds no checkpoint.");
  say("weights of step " + std::to_string(found->step) + ", from " + found->folder.native());
  train::LoadedModel loaded = train::load_empty(config.model);
  loaded.weights = train::read_masters(store::CheckpointReader::open(*found), *loaded.model);
  return loaded;
}

train::LoadedModel load(const config::ExportConfig& config) {
  if (!config.checkpoint.empty()) return load_checkpoint(config);
  if (config.init == "random") return train::load_random(config.model, static_cast<uint64_t>(config.seed));
  return train::load_pretrained(config.model);
}

int run(const FieldOptions& fields, bool json) {
  config::ExportConfig config;
  fields.apply(config);
  if (config.model.empty()) throw ConfigError("cli.export", "a model folder is needed: --model DIR.");
  if (config.out.empty()) throw ConfigError("cli.export", "a folder for the result is needed: --out DIR.");
  const train::LoadedModel loaded = load(config);
  checkpoint::export_model(config.model, config.out, *loaded.model, loaded.weights,
                           train::export_dtype(config.dtype, config.model));
  if (json) {
    std::printf("%s\n", Json{{"out", config.out}}.dump().c_str());
  } else {
    std::printf("the model is in %s\n", config.out.c_str());
  }
  return kDone;
}

}  // namespace

Run add_export(CLI::App& app) {
  const auto fields = std::make_shared<FieldOptions>();
  fields->add_to(app, config::ExportConfig{});
  return [fields](bool json) { return run(*fields, json); };
}

}  // namespace headrace::cli
