// What comes before a run's first step: its folder, data, model and policy, new or as a checkpoint has them.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"
#include "headrace/train/choose_policy.h"
#include "headrace/train/make_policy.h"
#include "headrace/train/trainer_run.h"

namespace headrace::train {
namespace {

using telemetry::PhaseTimes;

constexpr double kMessageInterval_s = 5;  // between messages about reading data

// Whether a checkpoint's folder is one of the run folder's.
bool is_within(const std::filesystem::path& checkpoint, const std::filesystem::path& run_folder) {
  std::error_code error;
  return std::filesystem::equivalent(checkpoint.parent_path().parent_path(), run_folder, error) && !error;
}

}  // namespace

void Trainer::prepare() {
  prepare_folder();
  require_device(config_);
  const config::ModelShape shape = config::ModelShape::load(config_.model);
  for (const std::string& note : shape.notes) say(note);
  text_ = std::make_unique<TextTools>(config_.model, config_.chat_template, shape.vocab_size);
  double last_message_s = PhaseTimes::steady_seconds();
  const auto tell_progress = [&](const data::Progress& progress) {
    if (should_stop()) throw Stopped();
    if (PhaseTimes::steady_seconds() - last_message_s < kMessageInterval_s) return;
    last_message_s = PhaseTimes::steady_seconds();
    say("reading " + progress.file + ": " + format_count(progress.documents) + " documents, " +
        format_count(progress.tokens) + " tokens");
  };
  std::optional<data::Position> position;
  if (resumed_) position = resumed_->position;
  data_ = open_training_data(config_, text_->codec(), limited_length(shape), tell_progress, position);
  describe_data();
  config_.device_budget = device_budget_of(config_);
  prepare_policy(shape, open_device(config_));
  open_folder();
  plan_steps();
}

// What is there decides where the run begins. Nothing is written, but for the lock of a run that is there.
void Trainer::prepare_folder() {
  if (is_run(config_.out)) lock_.emplace(config_.out);
  const auto tell = [this](const std::string& text) { say(text); };
  const std::optional<store::CheckpointInfo> found = find_resumed(config_, tell);
  const bool goes_on = found && is_within(found->folder, config_.out);
  const bool may_begin_anew = config_.resume == "auto" && is_unfinished(config_.out);
  if (!goes_on && !may_begin_anew) require_free(config_.out, config_.overwrite);
  if (!goes_on && config_.overwrite) require_inputs_outside(config_);
  if (!found) return;
  resumed_from_.emplace(store::CheckpointReader::open(*found));
  resumed_ = read_resumed(resumed_from_->state());
  if (config_.policy == "auto") {  // as it was chosen then: times of now would choose another
    config_.policy = resumed_->config.value("policy", config_.policy);
    config_.device_optimizer_share = resumed_->config.value("device_optimizer_share", config_.device_optimizer_share);
  }
  require_same_settings(config_, resumed_->config, tell);
  say("going on after step " + std::to_string(resumed_->step) + ", from " + found->folder.native());
}

void Trainer::prepare_policy(const config::ModelShape& shape, std::unique_ptr<device::Device> device) {
  const LargestStep largest{
      largest_micro_batch(*data_.corpus, data_.batch.micro_batch, config_.max_length, config_.layout),
      static_cast<int32_t>(data_.batch.accumulate), device->kind() == device::Kind::kCuda ? config_.max_length : 0};
  const auto tell = [this](const std::string& text) { say(text); };
  config_ = choose_policy(config_, model::Model(shape), largest, *device, tell);
  check_memory(config_, model::Model(shape), largest, tell);
  if (resumed_) {
    loaded_ = load_empty(config_.model);
  } else {
    loaded_ = config_.init == "random" ? load_random(config_.model, static_cast<uint64_t>(config_.seed))
                                       : load_pretrained(config_.model);
  }
  policy_ = make_policy(config_, *loaded_.model, std::exchange(loaded_.weights, {}), largest, std::move(device));
  if (policy_->trained_parameters().empty()) {
    throw ConfigError("train.prepare", "--freeze leaves none of the model's parameters to train.");
  }
  if (!resumed_) return;
  policy_->restore(CheckpointState(*resumed_from_), {config_.resume_changed, tell});
  resumed_from_.reset();
  position_ = resumed_->position;
  result_.steps = resumed_->step;
  result_.resumed_step = resumed_->step;
  result_.tokens = resumed_->tokens;
  result_.trained_tokens = trained_before_ = resumed_->trained_tokens;
  result_.skipped_steps = resumed_->skipped_steps;
  result_.final_loss = resumed_->final_loss;
}

void Trainer::open_folder() {
  if (!lock_) lock_.emplace(config_.out);
  const auto show = [this](std::string_view line) { progress_.message(line); };
  if (resumed_ && is_run(config_.out)) {
    folder_.emplace(config_, show, said_, resumed_->step);
  } else {
    folder_.emplace(config_, show, said_);
  }
  Checkpointing::Settings settings;
  settings.every = config::parse_save_every(config_.save_every);
  settings.keep_last = config_.keep_last;
  settings.saved_bytes = policy_->saved_bytes();
  settings.host_budget = config_.host_budget.empty() ? 0 : parse_bytes(config_.host_budget);
  if (device::parse(config_.device) == device::Kind::kEmulated) settings.writer_cores = cores_;
  settings.say = [this](const std::string& text) { say(text); };
  settings.note = [this](const std::string& text) { folder_->log().detail(text); };
  checkpoints_.emplace(*lock_, std::move(settings));
}

void Trainer::plan_steps() {
  total_steps_ = data_.loader->total_steps();
  schedule_ = {optim::parse_schedule(config_.schedule),
               config_.lr,
               std::max<int64_t>(1, total_steps_),
               config_.warmup,
               config_.decay_steps,
               config_.min_lr_ratio};
  if (resumed_ && resumed_->total_steps != total_steps_ && config_.schedule != "constant") {
    say("warning: the run now has " + format_count(total_steps_) + " steps, it had " +
        format_count(resumed_->total_steps) + ": learning rates from here on are those of the longer run.");
  }
  say("training " + format_count(static_cast<int64_t>(policy_->trained_parameters().size())) + " tensors, " +
      format_count(policy_->state_numel()) + " numbers, for " + format_count(total_steps_) + " steps of " +
      std::to_string(data_.batch.global_batch) + " sequences");
}

// Learned positions are a hard limit; rotary ones only a habit of the model.
int64_t Trainer::limited_length(const config::ModelShape& shape) {
  if (shape.max_positions == 0 || config_.max_length <= shape.max_positions) return config_.max_length;
  const std::string text = "max_length " + std::to_string(config_.max_length) + " exceeds the " +
                           std::to_string(shape.max_positions) + " positions the model was made for";
  if (!shape.has_learned_positions()) {
    say("warning: " + text + "; its rotary embedding will extrapolate.");
    return config_.max_length;
  }
  say("warning: " + text + "; using " + std::to_string(shape.max_positions) + ".");
  return shape.max_positions;
}

void Trainer::describe_data() {
  const data::Coverage& coverage = data_.corpus->coverage();
  for (const std::string& warning : coverage.warnings) say("warning: " + warning);
  say("data: " + format_count(coverage.documents) + " documents, " + format_count(coverage.tokens) + " tokens, " +
      format_count(coverage.trained_tokens) + " of them trained");
}

}  // namespace headrace::train
