#include "headrace/config/deepspeed.h"

#include <functional>
#include <map>
#include <set>

#include "headrace/base/errors.h"

namespace headrace::config {
namespace {

class Reader {
 public:
  Reader(std::string_view source, TrainConfig& config) : source_(source), config_(config) {}

  std::vector<std::string> read(const Json& json);

 private:
  [[noreturn]] void refuse(const std::string& key, const Json& value, const std::string& why) const {
    throw ConfigError("config.deepspeed", source_ + ": '" + key + "' is " + value.dump() + ": " + why);
  }
  void note(const std::string& key, const std::string& text) { notes_.push_back(source_ + ": '" + key + "' " + text); }

  // Sets `member` unless the value is "auto".
  template <class Member>
  void set(const std::string& key, const Json& value, Member& member) {
    if (value == "auto") {
      note(key, "is auto: ours stays " + Json(member).dump() + ".");
      return;
    }
    read_field({key, "DeepSpeed setting"}, value, member);
  }
  const Json& object(const std::string& key, const Json& value) const {
    if (!value.is_object()) refuse(key, value, "an object is expected.");
    return value;
  }
  bool is_enabled(const std::string& key, const Json& value) const {
    const auto enabled = object(key, value).find("enabled");
    return enabled != value.end() && *enabled == true;
  }

  void optimizer(const Json& value);
  void optimizer_parameter(const std::string& key, const Json& value);
  void scheduler(const Json& value);
  void scheduler_parameter(const std::string& key, const Json& value, std::string_view type);
  void precision(const std::string& key, const Json& value);
  void zero(const Json& value);
  void zenflow(const Json& value);
  void zenflow_parameter(const std::string& key, const Json& value);
  void other(const std::string& key, const Json& value);

  const std::string source_;
  TrainConfig& config_;
  std::vector<std::string> notes_;
};

std::vector<std::string> Reader::read(const Json& json) {
  if (!json.is_object()) {
    throw ConfigError("config.deepspeed", source_ + " holds no JSON object. Is it a ds_config.json?");
  }
  const std::map<std::string, std::function<void(const Json&)>> known = {
      {"train_batch_size", [&](const Json& v) { set("train_batch_size", v, config_.global_batch); }},
      {"train_micro_batch_size_per_gpu",
       [&](const Json& v) { set("train_micro_batch_size_per_gpu", v, config_.batch); }},
      {"gradient_accumulation_steps",
       [&](const Json& v) { set("gradient_accumulation_steps", v, config_.accumulate); }},
      {"gradient_clipping", [&](const Json& v) { set("gradient_clipping", v, config_.clip); }},
      {"seed", [&](const Json& v) { set("seed", v, config_.seed); }},
      {"optimizer", [&](const Json& v) { optimizer(v); }},
      {"scheduler", [&](const Json& v) { scheduler(v); }},
      {"fp16", [&](const Json& v) { precision("fp16", v); }},
      {"bf16", [&](const Json& v) { precision("bf16", v); }},
      {"zero_optimization", [&](const Json& v) { zero(v); }},
  };
  // DeepSpeed's own default is no clipping.
  config_.clip = 0;
  for (const auto& [key, value] : json.items()) {
    const auto found = known.find(key);
    found != known.end() ? found->second(value) : other(key, value);
  }
  // Our batch of 8 is no wish of the file: what it leaves open follows from the other two.
  const bool has_micro = json.contains("train_micro_batch_size_per_gpu");
  if (!has_micro && config_.global_batch > 0) {
    const int64_t accumulate = config_.accumulate > 0 ? config_.accumulate : 1;
    if (config_.global_batch % accumulate != 0) {
      refuse("train_batch_size", config_.global_batch,
             "it is no multiple of gradient_accumulation_steps " + std::to_string(accumulate) + ".");
    }
    config_.batch = config_.global_batch / accumulate;
  }
  return notes_;
}

void Reader::optimizer(const Json& value) {
  for (const auto& [key, member] : object("optimizer", value).items()) {
    if (key == "type") {
      const bool is_adam = member == "Adam" || member == "adam";
      if (member != "AdamW" && member != "adamw" && !is_adam) {
        refuse("optimizer.type", member, "only AdamW (decoupled decay) is supported.");
      }
    } else if (key == "params") {
      for (const auto& [name, parameter] : object("optimizer.params", member).items()) {
        optimizer_parameter(name, parameter);
      }
    } else {
      refuse("optimizer." + key, member, "this key is not known.");
    }
  }
  const Json params = value.value("params", Json::object());
  if ((value.value("type", "") == "Adam" || value.value("type", "") == "adam") &&
      params.value("adam_w_mode", Json(true)) == false && config_.weight_decay != 0) {
    refuse("optimizer.params.adam_w_mode", false,
           "decay added to the gradient is not supported, only decoupled decay.");
  }
}

void Reader::optimizer_parameter(const std::string& key, const Json& value) {
  const std::string name = "optimizer.params." + key;
  if (key == "lr") {
    set(name, value, config_.lr);
  } else if (key == "weight_decay") {
    set(name, value, config_.weight_decay);
  } else if (key == "eps") {
    set(name, value, config_.epsilon);
  } else if (key == "betas") {
    if (value == "auto") return note(name, "is auto: ours stay.");
    if (!value.is_array() || value.size() != 2) refuse(name, value, "two numbers are expected.");
    set(name, value[0], config_.beta1);
    set(name, value[1], config_.beta2);
  } else if (key == "torch_adam" || key == "adam_w_mode" || key == "bias_correction") {
    if (key == "bias_correction" && value == false) refuse(name, value, "AdamW here always corrects its bias.");
    note(name, "is not needed.");
  } else {
    refuse(name, value, "this key is not known.");
  }
}

void Reader::scheduler(const Json& value) {
  const Json type = object("scheduler", value).value("type", Json());
  static const std::map<std::string, std::string> kinds = {
      {"WarmupLR", "constant"}, {"WarmupDecayLR", "linear"}, {"WarmupCosineLR", "cosine"}};
  if (!type.is_string() || !kinds.contains(type.get<std::string>())) {
    refuse("scheduler.type", type, "WarmupLR, WarmupDecayLR and WarmupCosineLR are supported.");
  }
  config_.schedule = kinds.at(type.get<std::string>());
  for (const auto& [key, member] : value.items()) {
    if (key == "type") continue;
    if (key != "params") refuse("scheduler." + key, member, "this key is not known.");
    for (const auto& [name, parameter] : object("scheduler.params", member).items()) {
      scheduler_parameter(name, parameter, type.get<std::string>());
    }
  }
}

void Reader::scheduler_parameter(const std::string& key, const Json& value, std::string_view type) {
  const std::string name = "scheduler.params." + key;
  if (key == "warmup_num_steps") {
    set(name, value, config_.warmup);
  } else if (key == "warmup_max_lr") {
    set(name, value, config_.lr);
  } else if (key == "total_num_steps") {
    set(name, value, config_.steps);
  } else if (key == "cos_min_ratio") {
    set(name, value, config_.min_lr_ratio);
  } else if (key == "warmup_min_lr" || key == "warmup_min_ratio") {
    if (value.is_number() && value.get<double>() != 0) refuse(name, value, "the warm-up here starts from 0.");
  } else if (key == "warmup_type") {
    note(name, "is not used: the warm-up here is linear.");
  } else {
    refuse(name, value, "this key of " + std::string(type) + " is not known.");
  }
}

void Reader::precision(const std::string& key, const Json& value) {
  if (is_enabled(key, value)) note(key, "is enabled, but the CPU device computes in fp32.");
}

void Reader::zero(const Json& value) {
  const Json stage = object("zero_optimization", value).value("stage", Json(0));
  if (stage != 0) {
    note("zero_optimization",
         "has stage " + stage.dump() +
             ": there is one rank, so nothing is partitioned. Whether the optimizer is on the host "
             "is --policy's to say (resident or offload).");
  }
  if (value.contains("zenflow")) zenflow(value["zenflow"]);
}

void Reader::zenflow(const Json& value) {
  config_.policy = "zenflow";
  for (const auto& [key, member] : object("zero_optimization.zenflow", value).items()) zenflow_parameter(key, member);
}

// Its intervals are counted in steps here too; what its "auto" stands for there is our default.
void Reader::zenflow_parameter(const std::string& key, const Json& value) {
  const std::string name = "zero_optimization.zenflow." + key;
  if (key == "topk_ratio") {
    set(name, value, config_.topk_ratio);
  } else if (key == "update_interval") {
    if (!value.is_number_integer() && value != "auto") refuse(name, value, "a number of steps or auto is expected.");
    config_.update_interval = value.is_number_integer() ? value.dump() : "auto";
  } else if (key == "select_interval") {
    set(name, value, config_.select_interval);
  } else if (key == "select_strategy") {
    if (value == "epoch") refuse(name, value, "columns are chosen anew by steps: set select_interval to an epoch's.");
  } else if (key == "full_warm_up_rounds") {
    set(name, value, config_.warmup_steps);
    if (config_.warmup_steps < 1) config_.warmup_steps = 1;
  } else if (key == "overlap_step") {
    config_.overlap = value == true ? "exact" : "none";
  } else if (key == "auto_ratio" || key == "offload" || key == "steps_per_epoch" || key == "pt_reserved_cores_perc") {
    note(name, "is not used here.");
  } else {
    refuse(name, value, "this key is not known.");
  }
}

// Keys that change speed, output or nothing at all here; the rest is refused.
void Reader::other(const std::string& key, const Json& value) {
  static const std::set<std::string> harmless = {"steps_per_print",
                                                 "wall_clock_breakdown",
                                                 "dump_state",
                                                 "zero_allow_untested_optimizer",
                                                 "zero_force_ds_cpu_optimizer",
                                                 "communication_data_type",
                                                 "prescale_gradients",
                                                 "gradient_predivide_factor",
                                                 "sparse_gradients",
                                                 "memory_breakdown",
                                                 "tensorboard",
                                                 "wandb",
                                                 "csv_monitor",
                                                 "comms_logger",
                                                 "flops_profiler",
                                                 "aio",
                                                 "activation_checkpointing",
                                                 "checkpoint",
                                                 "torch_autocast",
                                                 "data_types"};
  if (!harmless.contains(key)) refuse(key, value, "this key is not known or not supported.");
  note(key, "is not used here.");
}

}  // namespace

std::vector<std::string> apply_deepspeed(const Json& json, std::string_view source, TrainConfig& config) {
  return Reader(source, config).read(json);
}

}  // namespace headrace::config
