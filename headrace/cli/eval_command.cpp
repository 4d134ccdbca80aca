#include <cstdio>
#include <memory>

#include "headrace/base/errors.h"
#include "headrace/cli/command.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/field_options.h"
#include "headrace/config/command_configs.h"
#include "headrace/os/interrupt.h"
#include "headrace/telemetry/spans.h"
#include "headrace/train/evaluate.h"
#include "headrace/train/load.h"
#include "headrace/train/training_data.h"

namespace headrace::cli {
namespace {

constexpr double kProgressInterval_s = 5;

int run(const FieldOptions& fields, bool json) {
  config::EvalConfig config;
  fields.apply(config);
  if (config.model.empty()) throw ConfigError("cli.eval", "a model folder is needed: --model DIR.");
  if (config.data.empty()) throw ConfigError("cli.eval", "at least one file is needed: --data FILE.");
  if (config.batch < 1) throw ConfigError("cli.eval", "--batch is below 1.");
  const os::InterruptGuard interrupts;
  train::set_compute_threads(config.threads);
  const train::LoadedModel loaded = train::load_pretrained(config.model);
  const train::TextTools text(config.model, config.chat_template, loaded.model->shape().vocab_size);
  train::EvaluationData data = train::open_evaluation_data(train::corpus_config(config, config.data), text.codec(),
                                                           data::parse_layout(config.layout), config.batch, {});
  for (const std::string& warning : data.corpus->coverage().warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  const int64_t batches = data.evaluation.micro_batches();
  double shown_at_s = telemetry::PhaseTimes::steady_seconds();
  const auto on_batch = [&](int64_t done) {
    if (telemetry::PhaseTimes::steady_seconds() - shown_at_s > kProgressInterval_s) {
      shown_at_s = telemetry::PhaseTimes::steady_seconds();
      std::fprintf(stderr, "scored %lld of %lld batches\n", static_cast<long long>(done),
                   static_cast<long long>(batches));
    }
    return !os::InterruptGuard::requested();
  };
  const train::EvaluationResult result = train::evaluate(*loaded.model, loaded.blocks(), data.evaluation, on_batch);
  if (os::InterruptGuard::requested()) return kInterrupted;
  if (json) {
    std::printf("%s\n", result.to_json().dump().c_str());
  } else {
    std::printf("loss %.4f nats a token, perplexity %.3f, over %lld tokens\n", result.loss(), result.perplexity(),
                static_cast<long long>(result.trained_tokens));
  }
  return kDone;
}

}  // namespace

Run add_eval(CLI::App& app) {
  const auto fields = std::make_shared<FieldOptions>();
  fields->add_to(app, config::EvalConfig{});
  return [fields](bool json) { return run(*fields, json); };
}

}  // namespace headrace::cli
