#include "headrace/train/run_folder.h"

#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

// Everything a run writes into its folder.
constexpr std::array<const char*, 5> kEntries{"config.json", "metrics.jsonl", "log.txt", "tensorboard", "model"};

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void make_room(const fs::path& folder, bool overwrite) {
  std::error_code error;
  if (!fs::exists(folder, error) || fs::is_empty(folder, error)) {
    fs::create_directories(folder, error);
    if (error) throw IoError("train.open", "cannot make folder", folder.string(), error.value());
    return;
  }
  const bool is_ours = fs::is_directory(folder, error) && fs::exists(folder / "metrics.jsonl", error);
  if (!is_ours) {
    throw ConfigError("train.open",
                      folder.string() + " exists and is not the folder of a run. Choose another --out, or empty it.");
  }
  if (!overwrite) {
    throw ConfigError("train.open",
                      folder.string() + " already holds a run. Choose another --out, or replace it with --overwrite.");
  }
  for (const char* name : kEntries) {
    fs::remove_all(folder / name, error);
    if (error) throw IoError("train.open", "cannot remove", (folder / name).string(), error.value());
  }
}

}  // namespace

RunFolder::RunFolder(const config::TrainConfig& config, telemetry::Log::Show show) : path_(config.out) {
  make_room(path_, config.overwrite);
  os::write_file_atomically(path_ / "config.json", config::to_json(config).dump(2) + "\n");
  log_.emplace(path_ / "log.txt", std::move(show));
  metrics_.emplace(path_ / "metrics.jsonl");
  if (config.tensorboard) tensorboard_.emplace(path_ / "tensorboard", wall_time_s());
}

void RunFolder::write_metrics(const OrderedJson& object, std::string_view group) {
  metrics_->write(object);
  if (!tensorboard_) return;
  const auto step = object.at("step").get<int64_t>();
  const double now = wall_time_s();
  for (const auto& [key, value] : object.items()) {
    if (key == "step" || !value.is_number()) continue;
    tensorboard_->add_scalar(std::string(group) + "/" + key, step, value.get<float>(), now);
  }
}

}  // namespace headrace::train
