#include <cstdio>
#include <memory>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/checkpoint/export.h"
#include "headrace/cli/command.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/field_options.h"
#include "headrace/config/command_configs.h"
#include "headrace/train/load.h"

namespace headrace::cli {
namespace {

int run(const FieldOptions& fields, bool json) {
  config::ExportConfig config;
  fields.apply(config);
  if (config.model.empty()) throw ConfigError("cli.export", "a model folder is needed: --model DIR.");
  if (config.out.empty()) throw ConfigError("cli.export", "a folder for the result is needed: --out DIR.");
  const train::LoadedModel loaded = config.init == "random"
                                        ? train::load_random(config.model, static_cast<uint64_t>(config.seed))
                                        : train::load_pretrained(config.model);
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
