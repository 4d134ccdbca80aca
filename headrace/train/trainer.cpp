#include "headrace/train/trainer.h"

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"
#include "headrace/checkpoint/export.h"
#include "headrace/os/file.h"
#include "headrace/os/memory_facts.h"
#include "headrace/tensor/arena_scope.h"
#include "headrace/train/micro_batch.h"
#include "headrace/train/trainer_run.h"

namespace headrace::train {

using telemetry::Phase;
using telemetry::PhaseTimes;

namespace {

constexpr int64_t kMostSkippedInARow = 25;

}  // namespace

void Trainer::say(const std::string& text) {
  if (folder_) return folder_->log().info(text);
  progress_.message(text);
  said_.push_back(text);
}

// Empty when the data is used up.
std::optional<Trainer::Made> Trainer::take_batch() {
  std::optional<data::StepBatch> batch = data_.loader->next();
  if (!batch) return std::nullopt;
  Made made{std::move(*batch), data_.loader->position(), {}};
  for (const data::MicroBatch& micro_batch : made.batch.micro_batches) {
    made.micro_batches.push_back(to_model_batch(micro_batch));
  }
  return made;
}

// A step is told the tokens of the one after it, so one batch is always taken ahead.
bool Trainer::step() {
  times_.begin_step();
  const double waiting_since_s = PhaseTimes::steady_seconds();
  if (!std::exchange(has_begun_, true)) next_ = take_batch();
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
  position_ = now->after;
  record(now->batch, result, learning_rate, waited_s);
  return true;
}

// Weights that are not finite make no finite step any more.
void Trainer::note_skipped(const policy::StepResult& result) {
  ++result_.skipped_steps;
  say("warning: step " + std::to_string(result_.steps) + " skipped, nothing was updated: " + result.skipped + ".");
  if (++skipped_in_a_row_ < kMostSkippedInARow) return;
  throw RunError("train.step",
                 std::to_string(kMostSkippedInARow) + " steps in a row were not finite, the last: " + result.skipped +
                     ". Lower --lr, clip (--clip 1), or go on from an earlier checkpoint (--resume PATH).");
}

void Trainer::record(const data::StepBatch& batch, const policy::StepResult& result, double learning_rate,
                     double waited_s) {
  result_.steps = batch.step + 1;
  result_.tokens += batch.tokens;
  if (result.skipped.empty()) result_.trained_tokens += result.trained_tokens;
  if (result.trained_tokens == 0) {
    say("warning: step " + std::to_string(result_.steps) + " has no token to learn; nothing was updated.");
  } else if (result.skipped.empty()) {
    result_.final_loss = result.loss();
    skipped_in_a_row_ = 0;
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
  if (!result.skipped.empty()) metrics["skipped"] = result.skipped;
  folder_->write_metrics(metrics, "train");
  if (!result.skipped.empty()) note_skipped(result);
  const double left = total_steps_ > 0 ? static_cast<double>(total_steps_ - result_.steps) * times_.step_time_s() : -1;
  progress_.update({result_.steps, total_steps_, result.loss(), learning_rate,
                    static_cast<double>(result.trained_tokens) / seconds, left, memory},
                   PhaseTimes::steady_seconds());
}

void Trainer::evaluate_if_due() {
  const bool is_due = config_.eval_every > 0 && result_.steps % config_.eval_every == 0;
  if (is_due && result_.steps < total_steps_ && folder_->evaluated_step() != result_.steps) evaluate_now();
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
  const OrderedJson metrics = {{"step", result_.steps},
                               {"loss", evaluation.loss()},
                               {"perplexity", evaluation.perplexity()},
                               {"tokens", evaluation.trained_tokens},
                               {"eval_time_s", PhaseTimes::steady_seconds() - begin_s}};
  // A run that was killed after its last evaluation has the line already.
  if (folder_->evaluated_step() != result_.steps) folder_->write_metrics(metrics, "eval");
  char text[96];
  std::snprintf(text, sizeof text, "step %lld  held-out loss %.4f  perplexity %.3f",
                static_cast<long long>(result_.steps), evaluation.loss(), evaluation.perplexity());
  say(text);
  result_.evaluation = evaluation;
}

Json Trainer::state() const {
  return {{"format", kStateFormat},
          {"program", options_.program},
          {"step", result_.steps},
          {"total_steps", total_steps_},
          {"tokens", result_.tokens},
          {"trained_tokens", result_.trained_tokens},
          {"skipped_steps", result_.skipped_steps},
          {"final_loss", result_.final_loss},
          {"seed", config_.seed},
          {"data", position_.to_json()},
          {"config", Json(config::to_json(config_))}};
}

void Trainer::save_checkpoint() {
  const PhaseTimes::Span span(times_, Phase::kSave);
  checkpoints_->save(*policy_, result_.steps, state());
}

// Before windows are ended and what is held back is applied: a longer run goes on from here as if it had not ended.
void Trainer::save_last_checkpoint() {
  const bool is_saved = checkpoints_->last_step() == result_.steps || result_.resumed_step == result_.steps;
  if (has_checkpoints() && !is_saved && !checkpoints_->error()) save_checkpoint();
  checkpoints_->finish();
  if (checkpoints_->error()) say("warning: a checkpoint could not be written; the run ends with the model as it is.");
}

void Trainer::write_trace() {
  if (config_.trace_steps == 0) return;
  const std::filesystem::path path = folder_->path() / "trace.json";
  std::ostringstream text;
  if (!policy_->write_trace(text)) return say("no trace: only policies offload and zenflow have lanes to show.");
  os::write_file_atomically(path, text.str());
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
  result_.trained_tokens_per_s =
      seconds > 0 ? static_cast<double>(result_.trained_tokens - trained_before_) / seconds : 0;
  say((result_.was_interrupted ? "interrupted after step " + std::to_string(result_.steps) + " of " +
                                     std::to_string(total_steps_) + ": saved the model as it is in "
                               : "saved the model in ") +
      result_.out.string());
}

Json TrainResult::to_json() const {
  Json json = {{"steps", steps},
               {"tokens", tokens},
               {"trained_tokens", trained_tokens},
               {"trained_tokens_per_s", trained_tokens_per_s},
               {"step_time_s", step_time_s},
               {"stall_share", stall_share},
               {"skipped_steps", skipped_steps},
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
