#include "headrace/config/train_config.h"

#include <cmath>
#include <cstdlib>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"

namespace headrace::config {
namespace {

std::string shown(double value) { return Json(value).dump(); }

void require(bool holds, std::string_view key, const std::string& value, std::string_view rule) {
  if (holds) return;
  throw ConfigError("config.validate", "'" + std::string(key) + "' is " + value + ", but " + std::string(rule) + ".");
}

void at_least(int64_t value, int64_t least, std::string_view key) {
  require(value >= least, key, std::to_string(value), "it must be at least " + std::to_string(least));
}

void in_range(double value, double low, double high, bool high_allowed, std::string_view key) {
  const bool holds = std::isfinite(value) && value >= low && (value < high || (high_allowed && value == high));
  require(holds, key, shown(value), "it must lie in [" + shown(low) + ", " + shown(high) + (high_allowed ? "]" : ")"));
}

void validate_data(const TrainConfig& c) {
  require(!c.model.empty(), "model", "empty", "a model folder is needed: --model DIR");
  require(!c.data.empty(), "data", "empty", "at least one file is needed: --data FILE");
  require(!c.out.empty(), "out", "empty", "a folder for the result is needed: --out DIR");
  at_least(c.steps, 0, "steps");
  at_least(c.batch, 1, "batch");
  at_least(c.accumulate, 0, "accumulate");
  at_least(c.global_batch, 0, "global_batch");
  at_least(c.max_length, 2, "max_length");
  require(c.steps > 0 || (std::isfinite(c.epochs) && c.epochs > 0), "epochs", shown(c.epochs),
          "it must be above 0 when steps is 0");
  in_range(c.held_out, 0, 1, false, "held_out");
  require(c.held_out == 0 || c.eval_data.empty(), "held_out", shown(c.held_out),
          "eval_data is given too: use one of them");
}

void validate_optimizer(const TrainConfig& c) {
  require(std::isfinite(c.lr) && c.lr >= 0, "lr", shown(c.lr), "it must be a number of at least 0");
  at_least(c.warmup, 0, "warmup");
  at_least(c.decay_steps, 0, "decay_steps");
  require(c.steps == 0 || c.warmup <= c.steps, "warmup", std::to_string(c.warmup),
          "there are only " + std::to_string(c.steps) + " steps");
  in_range(c.min_lr_ratio, 0, 1, true, "min_lr_ratio");
  in_range(c.beta1, 0, 1, false, "beta1");
  in_range(c.beta2, 0, 1, false, "beta2");
  require(std::isfinite(c.epsilon) && c.epsilon > 0, "epsilon", shown(c.epsilon), "it must be above 0");
  require(std::isfinite(c.clip) && c.clip >= 0, "clip", shown(c.clip), "it must be at least 0");
  require(std::isfinite(c.weight_decay) && c.weight_decay >= 0 && c.weight_decay * c.lr < 1, "weight_decay",
          shown(c.weight_decay), "it must be at least 0 and lr x weight_decay below 1");
}

void validate_offload(const TrainConfig& c) {
  at_least(c.host_workers, 0, "host_workers");
  at_least(c.trace_steps, 0, "trace_steps");
  if (!c.device_budget.empty()) parse_bytes(c.device_budget);
  if (!c.emulated_link.empty()) parse_bytes(c.emulated_link);
  if (!c.emulated_host.empty()) parse_bytes(c.emulated_host);
  require(parse_seconds(c.lane_deadline) > 0, "lane_deadline", c.lane_deadline, "it must be above 0");
  if (c.device_optimizer_share != "auto") parse_share(c.device_optimizer_share);
  require(c.policy == "resident" || c.device != "cpu", "policy", c.policy,
          "device cpu has only one memory: use --device emulated");
  const bool is_relaxed = c.clip_scope != "global" || c.clip_norm != "exact";
  require(!is_relaxed || c.policy == "offload", c.clip_scope != "global" ? "clip_scope" : "clip_norm",
          c.clip_scope != "global" ? c.clip_scope : c.clip_norm, "only policy offload relaxes clipping");
  require(c.clip_scope == "global" || c.clip_norm == "exact", "clip_norm", c.clip_norm,
          "clip_scope is block too: use one of them");
  require(!is_relaxed || c.on_nan == "stop", "on_nan", c.on_nan,
          "relaxed clipping updates before the whole gradient is known; leave out one of them");
  require(!is_relaxed || c.overlap == "exact", "overlap", c.overlap, "relaxed clipping is for overlap exact");
  const bool keeps_all_on_host = c.policy != "zenflow" && c.overlap == "none";
  require(!keeps_all_on_host || c.device_optimizer_share == "0", "device_optimizer_share", c.device_optimizer_share,
          "without overlap all optimizer state is on the host");
}

void validate_zenflow(const TrainConfig& c) {
  require(std::isfinite(c.topk_ratio) && c.topk_ratio > 0 && c.topk_ratio <= 1, "topk_ratio", shown(c.topk_ratio),
          "it must lie in (0, 1]");
  at_least(c.max_update_interval, 1, "max_update_interval");
  at_least(c.select_interval, 1, "select_interval");
  at_least(c.warmup_steps, 1, "warmup_steps");
  const int64_t interval = parse_update_interval(c.update_interval);
  require(interval == 0 || c.steps == 0 || interval <= c.steps, "update_interval", c.update_interval,
          "there are only " + std::to_string(c.steps) + " steps");
  if (c.policy != "zenflow") return;
  require(c.device_optimizer_share != "auto", "device_optimizer_share", "auto",
          "policy zenflow takes a number; policy auto chooses one");
}

}  // namespace

SaveEvery parse_save_every(const std::string& text) {
  char* end = nullptr;
  const long long steps = std::strtoll(text.c_str(), &end, 10);
  if (!text.empty() && *end == '\0') {
    require(steps >= 0, "save_every", text, "it must be at least 0");
    return {.steps = steps};
  }
  const double seconds = parse_seconds(text);
  require(seconds > 0, "save_every", text, "a time must be above 0");
  return {.seconds = seconds};
}

int64_t parse_update_interval(const std::string& text) {
  if (text == "auto") return 0;
  char* end = nullptr;
  const long long interval = std::strtoll(text.c_str(), &end, 10);
  require(!text.empty() && *end == '\0' && interval >= 1, "update_interval", text,
          "it must be a number of steps of at least 1, or auto");
  return interval;
}

double parse_share(const std::string& text) {
  char* end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  require(!text.empty() && *end == '\0', "device_optimizer_share", text, "it must be a number in [0, 1] or auto");
  in_range(share, 0, 1, true, "device_optimizer_share");
  return share;
}

void validate(const TrainConfig& config) {
  validate_data(config);
  validate_optimizer(config);
  at_least(config.seed, 0, "seed");
  at_least(config.eval_every, 0, "eval_every");
  at_least(config.threads, 0, "threads");
  if (!config.host_budget.empty()) parse_bytes(config.host_budget);
  validate_offload(config);
  validate_zenflow(config);
  parse_save_every(config.save_every);
  at_least(config.keep_last, 1, "keep_last");
  require(!config.resume.empty(), "resume", "empty", "it must be auto, never or a folder");
}

}  // namespace headrace::config
