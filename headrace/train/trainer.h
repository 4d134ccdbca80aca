// A training run from settings to a Hugging Face folder: builds every part, holds the step, owns every thread.
// The calling thread is the trainer thread of docs/threads.md.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "headrace/config/train_config.h"
#include "headrace/train/evaluate.h"

namespace headrace::train {

struct TrainResult {
  int64_t steps = 0;           // done
  int64_t tokens = 0;          // seen
  int64_t trained_tokens = 0;  // of them, with a target
  double trained_tokens_per_s = 0;
  double step_time_s = 0;                      // mean
  double stall_share = 0;                      // share of the steps' time in which compute waited [0..1]
  int64_t skipped_steps = 0;                   // not finite, with --on-nan skip
  double final_loss = 0;                       // of the last step [nats a trained token]
  std::optional<EvaluationResult> evaluation;  // after the last step
  std::optional<int64_t> resumed_step;         // steps that were done before this process
  OrderedJson policy;                          // its report: bytes per tier and lane; empty for resident
  bool was_interrupted = false;
  std::filesystem::path out;  // the run folder, which is the model folder too

  Json to_json() const;
};

// Where the run tells how it goes and asks whether to stop.
struct TrainOptions {
  std::FILE* progress = stderr;
  std::function<bool()> should_stop = {};  // asked between steps and evaluation batches; true ends with what there is
  std::function<bool()> should_save = {};  // asked after each step; true saves a checkpoint and goes on
  std::string program = {};                // name and version, for state.json
};

// Trains and leaves a model folder in config.out (train/run_folder.h). When asked to stop, the step under way is
// finished and the model saved as it is, and where the run saves checkpoints or goes on from one, a checkpoint too;
// before the first step nothing is written. When a checkpoint cannot be written the run ends likewise, with that error.
// Throws ConfigError also when another process uses config.out and when a run that is to go on has other settings.
// Throws ConfigError, DataError, CapacityError before anything was trained; RunError or IoError later.
TrainResult train(const config::TrainConfig& config, const TrainOptions& options);

}  // namespace headrace::train
