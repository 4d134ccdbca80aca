#include "headrace/train/trainer.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"
#include "headrace/checkpoint/export.h"
#include "headrace/device/cores.h"
#include "headrace/device/device.h"
#include "headrace/optim/schedule.h"
#include "headrace/os/memory_facts.h"
#include "headrace/policy/policy.h"
#include "headrace/telemetry/progress.h"
#include "headrace/telemetry/spans.h"
#include "headrace/tensor/arena_scope.h"
#include "headrace/train/choose_policy.h"
#include "headrace/train/load.h"
#include "headrace/train/make_policy.h"
#include "headrace/train/micro_batch.h"
#include "headrace/train/run_folder.h"
#include "headrace/train/training_data.h"

namespace headrace::train {
namespace {

using telemetry::Phase;
using telemetry::PhaseTimes;

constexpr double kMessageInterval_s = 5;  // between messages about reading data

class Trainer {
 public:
  Trainer(const config::TrainConfig& config, const TrainOptions& options)
      : config_(config), options_(options), progress_(options.progress), cores_(device::allowed_cores()) {}
  // Gives the calling thread its cores back.
  ~Trainer() {
    if (device::parse(config_.device) == device::Kind::kEmulated) device::pin_this_thread(cores_);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  TrainResult run() {
    try {
      prepare();
    } catch (const Stopped&) {
      result_.was_interrupted = true;
      progress_.message("interrupted before the first step: nothing was written.");
      return result_;
    }
    while (!should_stop() && step()) {
      const bool is_due = config_.eval_every > 0 && result_.steps % config_.eval_every == 0;
      if (is_due && result_.steps < total_steps_) evaluate_now();
    }
    progress_.finish();
    result_.was_interrupted = should_stop();
    policy_->finish_training();
    if (!result_.was_interrupted) evaluate_now();
    save();
    return result_;
  }

 private:
  struct Stopped {};  // thrown while preparing
  struct Made {
    data::StepBatch batch;
    std::vector<model::Batch> micro_batches;
  };

  bool should_stop() const { return options_.should_stop && options_.should_stop(); }
  // To the screen and, once there is one, the run's log.
  void say(const std::string& text);
  void prepare();
  int64_t limited_length(const config::ModelShape& shape);
  void describe_data();
  std::optional<Made> take_batch();
  bool step();
  void record(const data::StepBatch& batch, const policy::StepResult& result, double learning_rate, double waited_s);
  void evaluate_now();
  void write_trace();
  void save();

  const config::TrainConfig& config_;
  const TrainOptions& options_;
  telemetry::ProgressLine progress_;
  const std::vector<int> cores_;
  std::vector<std::string> said_;  // before there was a run folder
  std::optional<RunFolder> folder_;
  std::unique_ptr<TextTools> text_;
  TrainingData data_;
  LoadedModel loaded_;
  std::unique_ptr<policy::Policy> policy_;
  optim::ScheduleConfig schedule_;
  std::optional<Made> next_;
  int64_t total_steps_ = 0;
  PhaseTimes times_;
  TrainResult result_;
};

void Trainer::say(const std::string& text) {
  if (folder_) return folder_->log().info(text);
  progress_.message(text);
  said_.push_back(text);
}

void Trainer::prepare() {
  require_free(config_.out, config_.overwrite);
  if (config_.overwrite) require_inputs_outside(config_);
  require_device(config_);
  const config::ModelShape shape = config::ModelShape::load(config_.model);
  for (const std::string& note : shape.notes) say(note);
  text_ = std::make_unique<TextTools>(config_.model, config_.chat_template, shape.vocab_size);
  double last_message_s = PhaseTimes::steady_seconds();
  data_ = open_training_data(config_, text_->codec(), limited_length(shape), [&](const data::Progress& progress) {
    if (should_stop()) throw Stopped();
    if (PhaseTimes::steady_seconds() - last_message_s < kMessageInterval_s) return;
    last_message_s = PhaseTimes::steady_seconds();
    say("reading " + progress.file + ": " + format_count(progress.documents) + " documents, " +
        format_count(progress.tokens) + " tokens");
  });
  describe_data();
  const LargestStep largest{
      largest_micro_batch(*data_.corpus, data_.batch.micro_batch, config_.max_length, config_.layout),
      static_cast<int32_t>(data_.batch.accumulate)};
  auto device = open_device(config_);
  const auto tell = [this](const std::string& text) { say(text); };
  const config::TrainConfig chosen = choose_policy(config_, model::Model(shape), largest, *device, tell);
  check_memory(chosen, model::Model(shape), largest, tell);
  loaded_ = config_.init == "random" ? load_random(config_.model, static_cast<uint64_t>(config_.seed))
                                     : load_pretrained(config_.model);
  policy_ = make_policy(chosen, *loaded_.model, std::exchange(loaded_.weights, {}), largest, std::move(device));
  if (policy_->trained_parameters().empty()) {
    throw ConfigError("train.prepare", "--freeze leaves none of the model's parameters to train.");
  }
  folder_.emplace(
      config_, [this](std::string_view line) { progress_.message(line); }, said_);
  total_steps_ = data_.loader->total_steps();
  schedule_ = {optim::parse_schedule(config_.schedule),
               config_.lr,
               std::max<int64_t>(1, total_steps_),
               config_.warmup,
               config_.decay_steps,
               config_.min_lr_ratio};
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

// Empty when the data is used up.
std::optional<Trainer::Made> Trainer::take_batch() {
  std::optional<data::StepBatch> batch = data_.loader->next();
  if (!batch) return std::nullopt;
  Made made{std::move(*batch), {}};
  for (const data::MicroBatch& micro_batch : made.batch.micro_batches) {
    made.micro_batches.push_back(to_model_batch(micro_batch));
  }
  return made;
}

// A step is told the tokens of the one after it, so one batch is always taken ahead.
bool Trainer::step() {
  times_.begin_step();
  const double waiting_since_s = PhaseTimes::steady_seconds();
  if (result_.steps == 0) next_ = take_batch();
  const std::optional<Made> now = std::exchange(next_, std::nullopt);
  if (!now) return false;
  next_ = take_batch();
  const double waited_s = PhaseTimes::steady_seconds() - waiting_since_s;
  times_.add(Phase::kDataWait, waited_s);
  const double learning_rate = optim::learning_rate(schedule_, now->batch.step);
  policy::StepInput input{now->batch.step, now->micro_batches, learning_rate};
  if (next_) input.next_micro_batches = next_->micro_batches;
  const policy::StepResult result = policy_->step(input);
  times_.end_step();
  times_.add(Phase::kForward, result.forward_s);
  times_.add(Phase::kBackward, result.backward_s);
  times_.add(Phase::kUpdate, result.update_s);
  times_.add(Phase::kStall, result.stall_s);
  record(now->batch, result, learning_rate, waited_s);
  return true;
}

void Trainer::record(const data::StepBatch& batch, const policy::StepResult& result, double learning_rate,
                     double waited_s) {
  result_.steps = batch.step + 1;
  result_.tokens += batch.tokens;
  result_.trained_tokens += result.trained_tokens;
  if (result.trained_tokens == 0) {
    say("warning: step " + std::to_string(result_.steps) + " has no token to learn; nothing was updated.");
  } else {
    result_.final_loss = result.loss();
  }
  const double seconds = times_.last_step_s();
  const int64_t memory = os::memory_facts().resident_bytes;
  OrderedJson metrics = {{"step", result_.steps},
                         {"epoch", batch.epoch},
                         {"loss", result.loss()},
                         {"lr", learning_rate},
                         {"gradient_norm", result.gradient_norm},
                         {"clip_factor", result.clip_factor},
                         {"tokens", batch.tokens},
                         {"trained_tokens", result.trained_tokens},
                         {"trained_tokens_per_s", static_cast<double>(result.trained_tokens) / seconds},
                         {"step_time_s", seconds},
                         {"data_wait_s", waited_s},
                         {"forward_s", result.forward_s},
                         {"backward_s", result.backward_s},
                         {"update_s", result.update_s},
                         {"stall_s", result.stall_s},
                         {"memory_bytes", memory}};
  metrics.update(policy_->step_metrics());
  folder_->write_metrics(metrics, "train");
  const double left = total_steps_ > 0 ? static_cast<double>(total_steps_ - result_.steps) * times_.step_time_s() : -1;
  progress_.update({result_.steps, total_steps_, result.loss(), learning_rate,
                    static_cast<double>(result.trained_tokens) / seconds, left, memory},
                   PhaseTimes::steady_seconds());
}

void Trainer::evaluate_now() {
  if (!data_.evaluation) return;
  const PhaseTimes::Span span(times_, Phase::kEval);
  const double begin_s = PhaseTimes::steady_seconds();
  policy_->finish_updates();
  const tensor::ArenaScope scope(policy_->arena(), memory::Kind::kWorkspace);
  const EvaluationResult evaluation =
      evaluate(*loaded_.model, policy_->blocks(), *data_.evaluation, [this](int64_t) { return !should_stop(); });
  if (should_stop()) return;
  folder_->write_metrics({{"step", result_.steps},
                          {"loss", evaluation.loss()},
                          {"perplexity", evaluation.perplexity()},
                          {"tokens", evaluation.trained_tokens},
                          {"eval_time_s", PhaseTimes::steady_seconds() - begin_s}},
                         "eval");
  char text[96];
  std::snprintf(text, sizeof text, "step %lld  held-out loss %.4f  perplexity %.3f",
                static_cast<long long>(result_.steps), evaluation.loss(), evaluation.perplexity());
  say(text);
  result_.evaluation = evaluation;
}

void Trainer::write_trace() {
  if (config_.trace_steps == 0) return;
  const std::filesystem::path path = folder_->path() / "trace.json";
  std::ofstream out(path);
  if (!policy_->write_trace(out)) return say("no trace: only policies offload and zenflow have lanes to show.");
  out.close();
  if (!out)
    throw IoError("train.trace", "cannot write", path.string(), errno, "Free space or leave out --trace-steps.");
  say("trace of the last steps: " + path.string() + " (open it in https://ui.perfetto.dev)");
}

void Trainer::save() {
  const PhaseTimes::Span span(times_, Phase::kSave);
  policy_->finish_updates();
  write_trace();
  result_.policy = policy_->report();
  const std::filesystem::path made = folder_->path() / ".model";
  checkpoint::export_model(config_.model, made, *loaded_.model, policy::weights_of(*policy_),
                           export_dtype(config_.export_dtype, config_.model));
  folder_->publish_model(made);
  result_.out = folder_->path();
  result_.step_time_s = times_.step_time_s();
  result_.stall_share = times_.stall_share();
  const double seconds = times_.step_time_s() * static_cast<double>(times_.num_steps());
  result_.trained_tokens_per_s = seconds > 0 ? static_cast<double>(result_.trained_tokens) / seconds : 0;
  say((result_.was_interrupted ? "interrupted after step " + std::to_string(result_.steps) + " of " +
                                     std::to_string(total_steps_) + ": saved the model as it is in "
                               : "saved the model in ") +
      result_.out.string());
}

}  // namespace

Json TrainResult::to_json() const {
  Json json = {{"steps", steps},
               {"tokens", tokens},
               {"trained_tokens", trained_tokens},
               {"trained_tokens_per_s", trained_tokens_per_s},
               {"step_time_s", step_time_s},
               {"stall_share", stall_share},
               {"final_loss", final_loss},
               {"out", out.string()}};
  if (evaluation) json["eval"] = evaluation->to_json();
  if (!policy.empty()) json["policy"] = policy;
  return json;
}

TrainResult train(const config::TrainConfig& config, const TrainOptions& options) {
  config::validate(config);
  return Trainer(config, options).run();
}

}  // namespace headrace::train
