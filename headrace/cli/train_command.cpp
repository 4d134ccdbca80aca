#include <cstdio>
#include <memory>
#include <string>

#include "headrace/base/json.h"
#include "headrace/cli/command.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/field_options.h"
#include "headrace/config/deepspeed.h"
#include "headrace/config/train_config.h"
#include "headrace/os/file.h"
#include "headrace/os/interrupt.h"
#include "headrace/train/trainer.h"

namespace headrace::cli {
namespace {

struct TrainFlags {
  FieldOptions fields;
  std::string config_file, deepspeed_file;
};

// Later sources win: defaults, DeepSpeed file, config file, flags.
config::TrainConfig resolve(const TrainFlags& flags) {
  config::TrainConfig config;
  if (!flags.deepspeed_file.empty()) {
    const Json json = parse_json(os::read_file(flags.deepspeed_file), "config.deepspeed", flags.deepspeed_file);
    for (const std::string& note : config::apply_deepspeed(json, flags.deepspeed_file, config)) {
      std::fprintf(stderr, "%s\n", note.c_str());
    }
  }
  if (!flags.config_file.empty()) {
    config::apply_json(parse_json(os::read_file(flags.config_file), "config.read", flags.config_file),
                       flags.config_file, config);
  }
  flags.fields.apply(config);
  return config;
}

int run(const TrainFlags& flags, bool json) {
  const os::InterruptGuard interrupts;
  const train::TrainResult result = train::train(
      resolve(flags),
      {stderr, &os::InterruptGuard::requested, &os::InterruptGuard::take_save_request, "headrace " HEADRACE_VERSION});
  if (result.out.empty()) return kInterrupted;
  if (json) {
    std::printf("%s\n", result.to_json().dump().c_str());
  } else {
    std::printf("%lld steps, final loss %.4f, %.0f trained tokens/s; the model is in %s\n",
                static_cast<long long>(result.steps), result.final_loss, result.trained_tokens_per_s,
                result.out.c_str());
  }
  return result.was_interrupted ? kInterrupted : kDone;
}

}  // namespace

Run add_train(CLI::App& app) {
  const auto flags = std::make_shared<TrainFlags>();
  flags->fields.add_to(app, config::TrainConfig{});
  app.add_option("--config", flags->config_file, "JSON file with any of these settings; flags win over it")
      ->type_name("FILE");
  app.add_option("--deepspeed", flags->deepspeed_file, "DeepSpeed ds_config.json to take settings from")
      ->type_name("FILE");
  return [flags](bool json) { return run(*flags, json); };
}

}  // namespace headrace::cli
