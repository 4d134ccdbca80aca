#include "headrace/train/run_folder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/checkpoint/export.h"
#include "headrace/os/file.h"
#include "headrace/os/folder.h"
#include "headrace/store/list.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr std::string_view kLock = "run.lock";     // store/run_lock.h
constexpr const char* kModelMark = "config.json";  // without it a folder is no model folder

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

int64_t last_evaluation(const fs::path& metrics) {
  std::ifstream file(metrics);
  std::string line, last;
  while (std::getline(file, line)) last = line;
  const Json object = Json::parse(last, nullptr, false);
  return object.is_object() && object.contains("perplexity") ? object.value("step", int64_t{-1}) : -1;
}

bool is_lock(const std::string& name) { return name == kLock; }

bool is_free(const fs::path& folder) {
  return !fs::exists(folder) || (fs::is_directory(folder) && std::ranges::all_of(names_in(folder), is_lock));
}

constexpr std::array kRunFiles = {"run_config.json", "metrics.jsonl", "log.txt",        "trace.json",
                                  "tensorboard",     ".model",        ".model.partial", "checkpoints"};

// A file under construction of a process that was killed: ".run_config.json.<pid>-<number>.tmp".
bool is_temporary(const std::string& name) {
  const bool is_ours =
      name.starts_with(".run_config.json.") || name.starts_with(".metrics.jsonl.") || name.starts_with(".trace.json.");
  return is_ours && name.ends_with(".tmp");
}

bool is_record(const std::string& name) {
  return std::ranges::find(kRunFiles, name) != kRunFiles.end() || is_temporary(name);
}

// From here on the folder is no model folder, also after a power loss.
void hide_model(const fs::path& folder) {
  if (os::remove_file(folder / kModelMark)) os::sync_folder(folder);
}

// What is_run() looks for.
bool is_mark_of_run(const std::string& name) { return name == "run_config.json" || name == "metrics.jsonl"; }

// A file, a link or a folder with everything in it; nothing where nothing is.
void remove_entry(const fs::path& path) {
  std::error_code error;
  const bool is_folder = fs::symlink_status(path, error).type() == fs::file_type::directory;
  is_folder ? os::remove_tree(path) : static_cast<void>(os::remove_file(path));
}

// Makes the folder, or removes what an earlier run wrote there; what others put beside it stays. Half of a model is
// never taken for one, nor is a run that is half removed taken for something else, not after a power loss either.
void make_empty(const fs::path& folder) {
  os::create_folders(folder);
  hide_model(folder);
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [](const std::string& name) { return !is_record(name) && !checkpoint::is_exported_file(name); });
  const auto marks = std::ranges::stable_partition(names, [](const auto& name) { return !is_mark_of_run(name); });
  for (auto name = names.begin(); name != marks.begin(); ++name) remove_entry(folder / *name);
  if (!marks.empty()) os::sync_folder(folder);
  for (const std::string& mark : marks) remove_entry(folder / mark);
}

}  // namespace

bool is_run(const fs::path& folder) {
  return fs::is_directory(folder) && fs::exists(folder / "run_config.json") && fs::exists(folder / "metrics.jsonl");
}

void require_free(const fs::path& folder, bool overwrite) {
  if (is_free(folder) || (overwrite && is_run(folder))) return;
  throw ConfigError(
      "train.open",
      folder.string() + (is_run(folder) ? " already holds a run. Choose another --out, or replace the run "
                                          "with --overwrite."
                                        : " exists and is not the folder of a run. Choose another --out."));
}

bool is_unfinished(const fs::path& folder) {
  if (!fs::exists(folder)) return true;
  const auto is_beginning = [](const std::string& name) { return is_lock(name) || is_record(name); };
  return fs::is_directory(folder) && std::ranges::all_of(names_in(folder), is_beginning) &&
         store::list_checkpoints(folder).empty();
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
  if (!is_unfinished(path_)) require_free(path_, config.overwrite);
  make_empty(path_);
  open(config, std::move(show), earlier, std::nullopt);
}

RunFolder::RunFolder(const config::TrainConfig& config, telemetry::Log::Show show,
                     const std::vector<std::string>& earlier, int64_t resumed_step)
    : path_(config.out) {
  open(config, std::move(show), earlier, resumed_step);
}

void RunFolder::open(const config::TrainConfig& config, telemetry::Log::Show show,
                     const std::vector<std::string>& earlier, std::optional<int64_t> resumed_step) {
  remove_entry(path_ / ".model");  // of a run that was killed while it published its model
  for (const std::string& name : names_in(path_)) {
    if (is_temporary(name)) os::remove_file(path_ / name);
  }
  os::write_file_atomically(path_ / "run_config.json", config::to_json(config).dump(2) + "\n");
  log_.emplace(path_ / "log.txt", std::move(show));
  for (const std::string& line : earlier) log_->detail(line);
  metrics_.emplace(path_ / "metrics.jsonl", resumed_step);
  evaluated_step_ = last_evaluation(path_ / "metrics.jsonl");
  if (config.tensorboard) tensorboard_.emplace(path_ / "tensorboard", wall_time_s());
}

void RunFolder::publish_model(const fs::path& made) {
  hide_model(path_);  // that an interrupted run left
  for (const std::string& name : names_in(path_)) {
    // All of them: one that the new model lacks could be read in place of its own.
    if (checkpoint::is_exported_file(name)) os::remove_file(path_ / name);
  }
  for (const std::string& name : names_in(made)) {
    if (name != kModelMark) os::rename_path(made / name, path_ / name);
  }
  os::sync_folder(path_);
  os::rename_path(made / kModelMark, path_ / kModelMark);
  os::sync_folder(path_);
  os::remove_tree(made);
}

void RunFolder::write_metrics(const OrderedJson& object, std::string_view group) {
  metrics_->write(object);
  evaluated_step_ = group == "eval" ? object.at("step").get<int64_t>() : -1;
  if (!tensorboard_) return;
  const auto step = object.at("step").get<int64_t>();
  const double now = wall_time_s();
  for (const auto& [key, value] : object.items()) {
    if (key == "step" || !value.is_number()) continue;
    tensorboard_->add_scalar(std::string(group) + "/" + key, step, value.get<float>(), now);
  }
}

}  // namespace headrace::train
