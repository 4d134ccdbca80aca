// The folder that a training run leaves behind: a Hugging Face model folder, and beside the model how it was made:
// run_config.json, metrics.jsonl, tensorboard/, log.txt. One thread, but for the log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/config/train_config.h"
#include "headrace/telemetry/log.h"
#include "headrace/telemetry/metrics_log.h"
#include "headrace/telemetry/tensorboard.h"

namespace headrace::train {

// Throws ConfigError when `folder` holds anything but a lock, unless it is a run of ours and `overwrite` is set.
// Changes nothing.
void require_free(const std::filesystem::path& folder, bool overwrite);

// Whether all that the folder holds are the beginnings of a run that was ended before it left anything: neither a model
// nor a checkpoint. True when it holds nothing.
bool is_unfinished(const std::filesystem::path& folder);

// Whether it holds the records of a run.
bool is_run(const std::filesystem::path& folder);

// Throws ConfigError when the model or a data file of the run lies in the folder that --overwrite would write into.
void require_inputs_outside(const config::TrainConfig& config);

class RunFolder {
 public:
  // Makes the folder config.out, or removes from it what an earlier run wrote (require_free), and writes
  // run_config.json. `show` receives messages; `earlier` are those from before there was a log.
  RunFolder(const config::TrainConfig& config, telemetry::Log::Show show, const std::vector<std::string>& earlier);
  // Goes on with the run in config.out after this step: what its metrics say of later ones is cut off.
  RunFolder(const config::TrainConfig& config, telemetry::Log::Show show, const std::vector<std::string>& earlier,
            int64_t resumed_step);

  const std::filesystem::path& path() const { return path_; }
  telemetry::Log& log() { return *log_; }

  // Moves the files of the finished model folder `made` (on the same file system) into the run folder, config.json
  // last: until it is there the run folder is no model folder. `made` is removed.
  void publish_model(const std::filesystem::path& made);

  // One line of metrics.jsonl; numbers also become TensorBoard scalars "<group>/<key>" at object["step"].
  void write_metrics(const OrderedJson& object, std::string_view group);
  // The step of the evaluation that metrics.jsonl ends with; -1 when it ends with none.
  int64_t evaluated_step() const { return evaluated_step_; }

 private:
  void open(const config::TrainConfig& config, telemetry::Log::Show show, const std::vector<std::string>& earlier,
            std::optional<int64_t> resumed_step);

  std::filesystem::path path_;
  std::optional<telemetry::Log> log_;
  std::optional<telemetry::MetricsLog> metrics_;
  std::optional<telemetry::TensorBoardWriter> tensorboard_;
  int64_t evaluated_step_ = -1;
};

}  // namespace headrace::train
