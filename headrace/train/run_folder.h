// The folder that a training run leaves behind: resolved config, metrics, TensorBoard events, log, model.
// One thread, but for the log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "headrace/base/json.h"
#include "headrace/config/train_config.h"
#include "headrace/telemetry/log.h"
#include "headrace/telemetry/metrics_log.h"
#include "headrace/telemetry/tensorboard.h"

namespace headrace::train {

class RunFolder {
 public:
  // Makes the folder and writes config.json. An existing folder that is not empty is refused with a ConfigError, unless
  // `overwrite` is set and it holds a run of ours, whose files are then removed. `show` receives messages.
  RunFolder(const config::TrainConfig& config, telemetry::Log::Show show);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path model_path() const { return path_ / "model"; }
  telemetry::Log& log() { return *log_; }

  // One line of metrics.jsonl; numbers also become TensorBoard scalars "<group>/<key>" at object["step"].
  void write_metrics(const OrderedJson& object, std::string_view group);

 private:
  std::filesystem::path path_;
  std::optional<telemetry::Log> log_;
  std::optional<telemetry::MetricsLog> metrics_;
  std::optional<telemetry::TensorBoardWriter> tensorboard_;
};

}  // namespace headrace::train
