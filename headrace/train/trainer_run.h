// A run under way: the parts of trainer.cpp (the steps) and trainer_prepare.cpp (what comes before the first). For
// these two alone; the trainer thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/config/train_config.h"
#include "headrace/data/position.h"
#include "headrace/device/cores.h"
#include "headrace/device/device.h"
#include "headrace/optim/schedule.h"
#include "headrace/os/affinity.h"
#include "headrace/policy/policy.h"
#include "headrace/store/reader.h"
#include "headrace/store/run_lock.h"
#include "headrace/telemetry/progress.h"
#include "headrace/telemetry/spans.h"
#include "headrace/train/checkpointing.h"
#include "headrace/train/checkpointing_resume.h"
#include "headrace/train/load.h"
#include "headrace/train/run_folder.h"
#include "headrace/train/trainer.h"
#include "headrace/train/training_data.h"

namespace headrace::train {

class Trainer {
 public:
  Trainer(const config::TrainConfig& config, const TrainOptions& options)
      : config_(config), options_(options), progress_(options.progress), cores_(os::allowed_cores()) {}
  // Gives the calling thread its cores back.
  ~Trainer() {
    if (device::parse(config_.device) == device::Kind::kEmulated) os::pin_this_thread(cores_);
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
    if (resumed_) evaluate_if_due();  // it may have been stopped right before
    while (!should_end() && step()) {
      evaluate_if_due();
      if (checkpoints_->is_due(result_.steps) || is_asked_to_save()) save_checkpoint();
      checkpoints_->poll();
    }
    progress_.finish();
    result_.was_interrupted = should_stop();
    save_last_checkpoint();
    policy_->finish_training();
    if (!should_end()) evaluate_now();
    save();
    if (checkpoints_->error()) std::rethrow_exception(checkpoints_->error());
    return result_;
  }

 private:
  struct Stopped {};  // thrown while preparing
  struct Made {
    data::StepBatch batch;
    data::Position after;  // where the data stands once this step is done
    std::vector<model::Batch> micro_batches;
  };

  bool should_stop() const { return options_.should_stop && options_.should_stop(); }
  bool should_end() const { return should_stop() || checkpoints_->error(); }
  bool is_asked_to_save() const { return options_.should_save && options_.should_save(); }
  // To the screen and, once there is one, the run's log.
  void say(const std::string& text);
  void prepare();
  void prepare_folder();
  void prepare_policy(const config::ModelShape& shape, std::unique_ptr<device::Device> device);
  void open_folder();
  void plan_steps();
  int64_t limited_length(const config::ModelShape& shape);
  void describe_data();
  std::optional<Made> take_batch();
  bool step();
  void note_skipped(const policy::StepResult& result);
  void record(const data::StepBatch& batch, const policy::StepResult& result, double learning_rate, double waited_s);
  void evaluate_if_due();
  void evaluate_now();
  bool has_checkpoints() const { return config_.save_every != "0" || config_.resume != "never"; }
  Json state() const;
  void save_checkpoint();
  void save_last_checkpoint();
  void write_trace();
  void save();

  config::TrainConfig config_;  // with the policy that was chosen
  const TrainOptions& options_;
  telemetry::ProgressLine progress_;
  const std::vector<int> cores_;
  std::vector<std::string> said_;  // before there was a run folder
  std::optional<store::RunLock> lock_;
  std::optional<store::CheckpointReader> resumed_from_;  // until the policy has taken it
  std::optional<ResumedRun> resumed_;
  std::optional<RunFolder> folder_;
  std::unique_ptr<TextTools> text_;
  TrainingData data_;
  LoadedModel loaded_;
  std::unique_ptr<policy::Policy> policy_;
  optim::ScheduleConfig schedule_;
  bool has_begun_ = false;
  int64_t skipped_in_a_row_ = 0;  // [steps]
  std::optional<Made> next_;
  data::Position position_;  // after the last step
  int64_t total_steps_ = 0;
  int64_t trained_before_ = 0;  // [tokens] before this process
  telemetry::PhaseTimes times_;
  TrainResult result_;
  std::optional<Checkpointing> checkpoints_;  // after the lock
};

}  // namespace headrace::train
