#include "headrace/train/checkpointing_resume.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/store/list.h"
#include "headrace/store/names.h"
#include "headrace/train/checkpointing.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "train.resume";

// No bit of a run depends on these, or they say how long it lasts and where it lies.
constexpr std::array kFree = {"model",         "data",          "eval_data",     "out",           "overwrite",
                              "init",          "eval_every",    "device",        "recompute",     "threads",
                              "host_budget",   "export_dtype",  "tensorboard",   "device_budget", "host_workers",
                              "lane_deadline", "emulated_link", "emulated_host", "trace_steps",   "window_sum",
                              "save_every",    "keep_last",     "resume",        "resume_changed"};
// These matter to ZenFlow alone.
constexpr std::array kOfZenFlow = {"overlap",         "device_optimizer_share", "topk_ratio",   "update_interval",
                                   "select_interval", "max_update_interval",    "warmup_steps", "deferred_lr"};

bool holds(const auto& keys, std::string_view key) { return std::ranges::find(keys, key) != keys.end(); }

// A GPU rounds in other places.
bool changes_no_bit(const std::string& key, const Json& now, const Json& saved) {
  if (key == "device" && (now == "cuda" || saved == "cuda")) return false;
  return holds(kFree, key);
}

// A longer run is the same run.
bool has_grown(const std::string& key, const Json& now, const Json& saved) {
  return (key == "steps" || key == "epochs") && saved != 0 && (now > saved);
}

void say_skipped(const std::vector<store::SkippedCheckpoint>& skipped, const Say& say) {
  for (const store::SkippedCheckpoint& damaged : skipped) {
    say("warning: " + damaged.info.folder.native() + " is damaged and was left out: " + damaged.faults.front());
  }
}

std::optional<store::CheckpointInfo> newest_of(const fs::path& run_folder, const Say& say) {
  std::vector<store::SkippedCheckpoint> skipped;
  std::optional<store::CheckpointInfo> newest = store::find_newest_verified(run_folder, skipped);
  say_skipped(skipped, say);
  if (newest || skipped.empty()) return newest;
  throw DataError(kPlace, "none of the " + std::to_string(skipped.size()) + " checkpoints of " + run_folder.native() +
                              " is whole; the newest: " + skipped.front().faults.front() +
                              " Begin anew with --overwrite and without --resume.");
}

bool are_same(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

// Steps beyond it would be done again while their old checkpoints are still there.
void require_newest(const store::CheckpointInfo& chosen, const fs::path& run_folder) {
  for (const store::CheckpointInfo& info : store::list_checkpoints(run_folder)) {
    if (info.step <= chosen.step || !info.is_complete()) continue;
    throw ConfigError(kPlace, chosen.folder.native() + " is not the newest checkpoint of " + run_folder.native() +
                                  ", which has one of step " + std::to_string(info.step) +
                                  ". Give another --out, or remove the newer ones.");
  }
}

const Json& object_in(const Json& state, const char* key) {
  const Json& value = policy::fact(state, key);
  if (value.is_object()) return value;
  throw DataError(kPlace, "'" + std::string(key) + "' of state.json is no object.");
}

}  // namespace

std::optional<store::CheckpointInfo> find_checkpoint(const fs::path& path, const Say& say) {
  const fs::path folder = path.has_filename() ? path : path.parent_path();
  const std::optional<int64_t> step = store::step_in(folder.filename().native());
  if (!step || !fs::exists(folder / store::kManifestName)) return newest_of(folder, say);
  store::CheckpointInfo info = store::read_info(folder, *step);
  const std::vector<std::string> faults = store::verify(info);
  if (!faults.empty()) throw DataError(kPlace, folder.native() + " is damaged: " + faults.front());
  return info;
}

std::optional<store::CheckpointInfo> find_resumed(const config::TrainConfig& config, const Say& say) {
  if (config.resume == "never") return std::nullopt;
  const bool is_auto = config.resume == "auto";
  std::optional<store::CheckpointInfo> found = find_checkpoint(is_auto ? config.out : config.resume, say);
  if (!found && !is_auto) {
    throw ConfigError(kPlace, config.resume + " holds no checkpoint. Name the folder of a run or of a checkpoint.");
  }
  if (found && !is_auto && are_same(found->folder.parent_path().parent_path(), config.out)) {
    require_newest(*found, config.out);
  }
  return found;
}

ResumedRun read_resumed(const Json& state) {
  if (policy::count_fact(state, "format") != kStateFormat) {
    throw DataError(kPlace, "state.json is of format " + policy::fact(state, "format").dump() +
                                "; this version reads format " + std::to_string(kStateFormat) + ".");
  }
  return {.config = object_in(state, "config"),
          .position = data::Position::from_json(object_in(state, "data")),
          .step = policy::count_fact(state, "step"),
          .tokens = policy::count_fact(state, "tokens"),
          .trained_tokens = policy::count_fact(state, "trained_tokens"),
          .total_steps = policy::count_fact(state, "total_steps"),
          .skipped_steps = state.contains("skipped_steps") ? policy::count_fact(state, "skipped_steps") : 0,
          .final_loss = policy::number_fact(state, "final_loss")};
}

std::vector<std::string> changed_settings(const config::TrainConfig& config, const Json& saved) {
  const Json now = config::to_json(config);
  const bool has_zenflow = now.at("policy") == "zenflow" || saved.value("policy", "") == "zenflow";
  std::vector<std::string> changes;
  for (const auto& [key, value] : now.items()) {
    const auto before = saved.find(key);
    if (before == saved.end() || *before == value || changes_no_bit(key, value, *before)) continue;
    if (!has_zenflow && (key == "policy" || holds(kOfZenFlow, key))) continue;
    if (has_grown(key, value, *before)) continue;
    changes.push_back(key + " is " + value.dump() + ", was " + before->dump());
  }
  return changes;
}

void require_same_settings(const config::TrainConfig& config, const Json& saved, const Say& say) {
  std::string list;
  for (const std::string& change : changed_settings(config, saved)) list += (list.empty() ? "" : "; ") + change;
  if (list.empty()) return;
  if (config.resume_changed) return say("going on with changed settings: " + list + ".");
  throw ConfigError(kPlace, "settings differ from the saved run's: " + list +
                                ". Set them back, or add --resume-changed to go on with them.");
}

CheckpointState::CheckpointState(const store::CheckpointReader& reader)
    : reader_(reader), facts_(object_in(reader.state(), "policy")) {}

std::optional<policy::StateTensor> CheckpointState::find(const std::string& name) const {
  if (!reader_.has(name)) return std::nullopt;
  const safetensors::TensorInfo& info = reader_.info(name);
  return policy::StateTensor{name, info.dtype, info.shape, reader_.bytes(name)};
}

std::vector<at::Tensor> read_masters(const store::CheckpointReader& reader, const model::Model& model) {
  const CheckpointState state(reader);
  std::vector<at::Tensor> weights;
  for (const model::BlockSpec& block : model.blocks()) {
    weights.push_back(at::zeros({block.numel}));
    for (const model::ParameterSpec& parameter : block.parameters) {
      if (parameter.numel == 0) continue;
      float* to = weights.back().data_ptr<float>() + parameter.offset;
      policy::read_tensor<float>(state, "master/" + parameter.name, parameter.shape,
                                 {to, static_cast<size_t>(parameter.numel)});
    }
  }
  return weights;
}

}  // namespace headrace::train
