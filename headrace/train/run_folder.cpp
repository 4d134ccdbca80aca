#include "headrace/train/run_folder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/checkpoint/export.h"
#include "headrace/os/file.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_free(const fs::path& folder) {
  return !fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder));
}

bool is_run(const fs::path& folder) {
  return fs::is_directory(folder) && fs::exists(folder / "run_config.json") && fs::exists(folder / "metrics.jsonl");
}

constexpr std::array kRunFiles = {"run_config.json", "metrics.jsonl", "log.txt", "trace.json", "tensorboard", ".model"};

// Makes the folder, or removes what an earlier run wrote there; what others put beside it stays.
void make_empty(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = std::ranges::find(kRunFiles, name) != kRunFiles.end() || checkpoint::is_exported_file(name);
    if (is_ours) old.push_back(entry.path());
  }
  for (const fs::path& path : old) {
    if (!error) fs::remove_all(path, error);
  }
  if (error) throw IoError("train.open", "cannot empty or make folder", folder.string(), error.value());
}

}  // namespace

void require_free(const fs::path& folder, bool overwrite) {
  if (is_free(folder) || (overwrite && is_run(folder))) return;
  throw ConfigError(
      "train.open",
      folder.string() + (is_run(folder) ? " already holds a run. Choose another --out, or replace the run "
                                          "with --overwrite."
                                        : " exists and is not the folder of a run. Choose another --out."));
}

void require_inputs_outside(const config::TrainConfig& config) {
  const fs::path out = fs::weakly_canonical(config.out);
  std::vector<std::string> inputs{config.model};
  inputs.insert(inputs.end(), config.data.begin(), config.data.end());
  inputs.insert(inputs.end(), config.eval_data.begin(), config.eval_data.end());
  for (const std::string& input : inputs) {
    const fs::path path = fs::weakly_canonical(input);
    if (std::mismatch(out.begin(), out.end(), path.begin(), path.end()).first != out.end()) continue;
    throw ConfigError("train.open", "--out " + config.out + " would overwrite " + input +
                                        ", which this run reads. Choose another --out.");
  }
}

RunFolder::RunFolder(const config::TrainConfig& config, telemetry::Log::Show show,
                     const std::vector<std::string>& earlier)
    : path_(config.out) {
  require_free(path_, config.overwrite);
  make_empty(path_);
  os::write_file_atomically(path_ / "run_config.json", config::to_json(config).dump(2) + "\n");
  log_.emplace(path_ / "log.txt", std::move(show));
  for (const std::string& line : earlier) log_->detail(line);
  metrics_.emplace(path_ / "metrics.jsonl");
  if (config.tensorboard) tensorboard_.emplace(path_ / "tensorboard", wall_time_s());
}

void RunFolder::publish_model(const fs::path& made) {
  const auto publish = [&](const fs::path& file) {
    std::error_code error;
    fs::rename(file, path_ / file.filename(), error);
    if (error) throw IoError("train.save", "cannot rename", file.string(), error.value());
  };
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(made)) files.push_back(entry.path());
  for (const fs::path& file : files) {
    if (file.filename() != "config.json") publish(file);
  }
  os::sync_folder(path_);
  publish(made / "config.json");
  os::sync_folder(path_);
  fs::remove_all(made);
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
