// Everything a training run can be told: one field a setting, each a flag of `headrace train` and a key of its JSON
// config. Plain data; the defaults are those of --help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/config/corpus_settings.h"

namespace headrace::config {

// How training state is spread over device and host; used by policy offload.
struct OffloadConfig {
  std::string device_budget;
  std::string overlap = "exact";
  std::string device_optimizer_share = "0";
  std::string clip_scope = "global";
  std::string clip_norm = "exact";
  int64_t host_workers = 0;
  std::string lane_deadline = "60s";
  std::string emulated_link;
  std::string emulated_host;
  int64_t trace_steps = 0;

  template <class Visitor>
  void visit_offload(Visitor& visit) {
    visit(FieldInfo{"device_budget", "most device memory to use, like 8GiB; empty for no limit"}, device_budget);
    visit(
        FieldInfo{
            "overlap",
            "offload: each block's update as soon as it may start, or all of them after backward; zenflow: the host "
            "updates while the device computes on, or the device waits",
            {"exact", "none"}},
        overlap);
    visit(
        FieldInfo{
            "device_optimizer_share",
            "offload, zenflow: share of the optimizer state kept on the device [0..1], whole blocks; auto: as much as "
            "removes the stall"},
        device_optimizer_share);
    visit(FieldInfo{"clip_scope",
                    "offload: clip by the norm of the whole gradient, or each block by its own (not exact)",
                    {"global", "block"}},
          clip_scope);
    visit(FieldInfo{"clip_norm",
                    "offload: clip by this step's norm, or by that of the step before (not exact)",
                    {"exact", "lagged"}},
          clip_norm);
    visit(FieldInfo{"host_workers", "offload, zenflow: threads that update on the host; 0 for one a host core"},
          host_workers);
    visit(FieldInfo{"lane_deadline", "offload, zenflow: a copy or update that takes longer ends the run, like 60s"},
          lane_deadline);
    visit(FieldInfo{"emulated_link", "device emulated: link each way, like 12GiB a second; empty: as memory copies"},
          emulated_link);
    visit(FieldInfo{"emulated_host", "device emulated: bytes a second of all host updates; empty: as fast as it is"},
          emulated_host);
    visit(FieldInfo{"trace_steps", "offload, zenflow: write OUT/trace.json of the last so many steps; 0 for none"},
          trace_steps);
  }
};

// How columns are deferred; used by policy zenflow. Named as DeepSpeed names them where it does.
struct ZenFlowConfig {
  double topk_ratio = 0.1;
  std::string update_interval = "auto";
  int64_t max_update_interval = 8;
  int64_t select_interval = 16;
  int64_t warmup_steps = 1;
  std::string deferred_lr = "linear";
  std::string window_sum = "auto";

  template <class Visitor>
  void visit_zenflow(Visitor& visit) {
    visit(FieldInfo{"topk_ratio", "zenflow: share of each matrix's columns updated on the device at every step (0..1]"},
          topk_ratio);
    visit(
        FieldInfo{
            "update_interval",
            "zenflow: the host updates the other columns after every so many steps; auto: as the host can follow"},
        update_interval);
    visit(FieldInfo{"max_update_interval", "zenflow: longest update interval that auto may choose [steps]"},
          max_update_interval);
    visit(FieldInfo{"select_interval", "zenflow: choose the columns anew after every so many steps"}, select_interval);
    visit(FieldInfo{"warmup_steps", "zenflow: first steps, in which every column is updated exactly, at least 1"},
          warmup_steps);
    visit(
        FieldInfo{"deferred_lr",
                  "zenflow: learning rate of an update for S steps: that of one step, times the root of S, or times S",
                  {"plain", "sqrt", "linear"}},
        deferred_lr);
    visit(
        FieldInfo{"window_sum",
                  "zenflow: keep a window's gradients apart until the host sums them in one pass, or add each to a sum "
                  "as it comes; auto: apart where host memory allows; the same bits",
                  {"auto", "slots", "running"}},
        window_sum);
  }
};

// When a run is saved so that it can go on, and what it goes on from.
struct CheckpointConfig {
  std::string save_every = "0";
  int64_t keep_last = 2;
  std::string resume = "never";
  bool resume_changed = false;

  template <class Visitor>
  void visit_checkpoints(Visitor& visit) {
    visit(FieldInfo{"save_every",
                    "save a checkpoint after every so many steps, or so much time like 10min; 0: none but on SIGUSR1"},
          save_every);
    visit(FieldInfo{"keep_last", "checkpoints to keep, at least 1"}, keep_last);
    visit(FieldInfo{"resume",
                    "go on from a checkpoint: auto: the newest whole one in OUT, if any; never; or the folder of a run "
                    "or of a checkpoint"},
          resume);
    visit(FieldInfo{"resume_changed", "go on although settings that change the numbers differ from the saved run's"},
          resume_changed);
  }
};

struct TrainConfig : CorpusSettings, OffloadConfig, ZenFlowConfig, CheckpointConfig {
  std::string model;
  std::vector<std::string> data;
  std::vector<std::string> eval_data;
  std::string out;
  bool overwrite = false;
  std::string init = "pretrained";

  int64_t steps = 0;
  double epochs = 1;
  int64_t batch = 8;
  int64_t accumulate = 0;
  int64_t global_batch = 0;
  std::string layout = "documents";
  double held_out = 0;
  std::string group_field;

  double lr = 2e-5;
  std::string schedule = "cosine";
  int64_t warmup = 0;
  int64_t decay_steps = 0;
  double min_lr_ratio = 0;
  double weight_decay = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double clip = 1;
  std::string on_nan = "stop";

  std::vector<std::string> freeze;
  int64_t seed = 0;
  int64_t eval_every = 0;
  std::string device = "cpu";
  std::string policy = "resident";
  bool recompute = false;
  int64_t threads = 0;
  std::string host_budget;
  std::string export_dtype = "auto";
  bool tensorboard = true;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit_data(visit);
    visit_optimizer(visit);
    visit_run(visit);
  }

 private:
  template <class Visitor>
  void visit_data(Visitor& visit) {
    visit(FieldInfo{"model", "Hugging Face model folder"}, model);
    visit(FieldInfo{"data", "training files: .jsonl, .txt or .bin, the first two also .gz or .zst"}, data);
    visit(FieldInfo{"eval_data", "held-out files, never trained on"}, eval_data);
    visit(FieldInfo{"out", "folder to make: the trained model, its metrics, log and settings"}, out);
    visit(FieldInfo{"overwrite", "replace the run that OUT already holds"}, overwrite);
    visit(FieldInfo{"init",
                    "weights to start from: the folder's, or random ones from its config alone",
                    {"pretrained", "random"}},
          init);
    visit(FieldInfo{"steps", "optimizer steps; 0 for as many as `epochs` make"}, steps);
    visit(FieldInfo{"epochs", "passes over the data when `steps` is 0"}, epochs);
    visit(FieldInfo{"batch", "sequences in a micro-batch"}, batch);
    visit(FieldInfo{"accumulate", "micro-batches in a step; 0: as many as global_batch asks for, else 1"}, accumulate);
    visit(FieldInfo{"global_batch", "sequences in a step; 0: batch x accumulate"}, global_batch);
    visit(FieldInfo{"layout",
                    "how sequences share a micro-batch: side by side, packed to max_length, or padded",
                    {"documents", "packed", "padded_left", "padded_right"}},
          layout);
    visit_corpus(visit);
    visit(FieldInfo{"held_out", "share of the records set aside for evaluation [0..1)"}, held_out);
    visit(FieldInfo{"group_field", "records with the same value of this key stay on one side of that split"},
          group_field);
  }

  template <class Visitor>
  void visit_optimizer(Visitor& visit) {
    visit(FieldInfo{"lr", "peak learning rate"}, lr);
    visit(FieldInfo{"schedule", "learning rate after the warm-up", {"constant", "linear", "cosine", "wsd"}}, schedule);
    visit(FieldInfo{"warmup", "linear warm-up [steps]"}, warmup);
    visit(FieldInfo{"decay_steps", "last part of `wsd` in which the rate falls [steps]; 0 for a tenth"}, decay_steps);
    visit(FieldInfo{"min_lr_ratio", "where the schedule ends, as a share of lr [0..1]"}, min_lr_ratio);
    visit(FieldInfo{"weight_decay", "decoupled decay of matrices; norms and biases have none"}, weight_decay);
    visit(FieldInfo{"beta1", "decay of the first moment [0..1)"}, beta1);
    visit(FieldInfo{"beta2", "decay of the second moment [0..1)"}, beta2);
    visit(FieldInfo{"epsilon", "added to the root of the second moment"}, epsilon);
    visit(FieldInfo{"clip", "largest global gradient norm; 0 for no clipping"}, clip);
    visit(FieldInfo{"on_nan",
                    "a step whose loss or gradient is not finite ends the run, or is left out and reported; to leave "
                    "one out, updates wait for the whole gradient, as with clip",
                    {"stop", "skip"}},
          on_nan);
    visit(FieldInfo{"freeze", "parameters that stay as they are, by name; * stands for any characters"}, freeze);
  }

  template <class Visitor>
  void visit_run(Visitor& visit) {
    visit(FieldInfo{"seed", "the same seed gives the same bits"}, seed);
    visit(FieldInfo{"eval_every", "evaluate after every so many steps and after the last; 0: only after the last"},
          eval_every);
    visit(FieldInfo{"device", "where to compute", {"cpu", "cuda", "emulated"}}, device);
    visit(FieldInfo{"policy",
                    "where the training state lives: on the device, its optimizer part on the host, or zenflow: there "
                    "too, but for "
                    "the columns that matter; auto chooses and says why",
                    {"resident", "offload", "zenflow", "auto"}},
          policy);
    visit_offload(visit);
    visit_zenflow(visit);
    visit(FieldInfo{"recompute", "keep only each block's input and run its forward again in backward"}, recompute);
    visit(FieldInfo{"threads", "compute threads; 0 for all cores"}, threads);
    visit(FieldInfo{"host_budget", "most host memory to use, like 16GiB; empty for what is available"}, host_budget);
    visit(
        FieldInfo{
            "export_dtype", "numbers in the result; auto: as in the model folder", {"auto", "fp32", "bf16", "fp16"}},
        export_dtype);
    visit(FieldInfo{"tensorboard", "write TensorBoard events"}, tensorboard);
    visit_checkpoints(visit);
  }
};

// Checks ranges and what contradicts what; the edge after which a config is trusted.
// Throws ConfigError naming the key, its value and what is allowed.
void validate(const TrainConfig& config);

// device_optimizer_share as a number [0..1]. Throws ConfigError for anything else, "auto" too.
double parse_share(const std::string& text);

// save_every: one of the two, or none; 0 for the other.
struct SaveEvery {
  int64_t steps = 0;
  double seconds = 0;
};
// "100" for steps, "10min" for time. Throws ConfigError for anything else.
SaveEvery parse_save_every(const std::string& text);

// update_interval as a number >= 1; 0 for "auto". Throws ConfigError for anything else.
int64_t parse_update_interval(const std::string& text);

}  // namespace headrace::config
