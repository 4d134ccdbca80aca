#include "headrace/train/choose_policy.h"

#include <algorithm>

#include "headrace/base/units.h"
#include "headrace/plan/policy_choice.h"
#include "headrace/policy/host_update.h"
#include "headrace/train/machine_rates.h"

namespace headrace::train {
namespace {

// Of the matrix rate that a whole step reaches, small kernels and attention included; bench/results/step.json.
constexpr double kReached = 0.75;

// [s] of forward and backward of one step.
struct StepSeconds {
  double forward, backward;
};

// Two operations a weight and token forward, four backward; an embedding that is no head multiplies nothing.
StepSeconds step_seconds(const config::TrainConfig& config, const model::Model& model, const LargestStep& step,
                         double flops_per_s) {
  double weights = static_cast<double>(model.num_parameters());
  if (!model.shape().is_tied) weights -= static_cast<double>(model.blocks().front().numel);
  const double tokens = static_cast<double>(step.tokens) * step.accumulate;
  const double forward = 2 * weights * tokens / (kReached * flops_per_s);
  return {forward, (config.recompute ? 3 : 2) * forward};
}

double host_update_seconds(const config::TrainConfig& config, const model::Model& model, const device::Cores& cores,
                           double bytes_per_s) {
  const double workers = config.host_workers > 0 ? static_cast<double>(config.host_workers)
                                                 : static_cast<double>(std::max<size_t>(1, cores.host.size()));
  double all = workers * bytes_per_s;
  if (!config.emulated_host.empty()) all = std::min(all, static_cast<double>(parse_bytes(config.emulated_host)));
  return static_cast<double>(model.num_parameters()) * policy::kHostUpdateBytes / all;
}

}  // namespace

config::TrainConfig choose_policy(const config::TrainConfig& config, const model::Model& model, const LargestStep& step,
                                  device::Device& device, const std::function<void(const std::string&)>& say) {
  if (config.policy != "auto") return config;
  config::TrainConfig chosen = config;
  if (device.kind() == device::Kind::kCuda && fits_device(config, model, step)) {
    say("policy auto: resident: everything fits the device, so nothing needs to leave it");
    chosen.policy = "resident";
    return chosen;
  }
  const MachineRates rates = measure_rates(device);
  const StepSeconds seconds = step_seconds(config, model, step, rates.flops_per_s);
  plan::ChoiceRequest request;
  request.forward_s = seconds.forward;
  request.backward_s = seconds.backward;
  request.host_update_s = host_update_seconds(config, model, device.cores(), rates.host_update_bytes_per_s);
  request.clips = config.clip > 0 || config.on_nan == "skip";
  request.device_share = spare_device_share(config, model, step);
  request.topk_ratio = config.topk_ratio;
  request.longest_interval = config.max_update_interval;
  request.has_slots = has_room_for_slots(config, model, step);
  const plan::PolicyChoice choice = plan::choose_policy(request);
  for (const std::string& reason : choice.reasons) say("policy auto: " + reason);
  chosen.policy = choice.policy == plan::ChosenPolicy::kZenFlow ? "zenflow" : "offload";
  chosen.device_optimizer_share = std::to_string(choice.device_share);
  return chosen;
}

}  // namespace headrace::train
