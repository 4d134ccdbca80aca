#include "headrace/train/make_policy.h"

#include <algorithm>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/pattern.h"
#include "headrace/base/units.h"
#include "headrace/device/cpu.h"
#include "headrace/device/emulated.h"
#include "headrace/os/memory_facts.h"
#include "headrace/plan/memory.h"
#include "headrace/plan/offload.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/resident.h"
#include "headrace/policy/trained_blocks.h"
#include "headrace/train/load.h"

namespace headrace::train {
namespace {

int64_t bytes_or_zero(const std::string& text) { return text.empty() ? 0 : parse_bytes(text); }

policy::OptimizerSettings optimizer_of(const config::TrainConfig& config) {
  return {config.beta1, config.beta2, config.epsilon, config.weight_decay, config.clip};
}

std::function<bool(std::string_view)> frozen_of(const config::TrainConfig& config) {
  return [patterns = config.freeze](std::string_view name) { return matches_any(name, patterns); };
}

// Whole blocks from the first on that together hold at least this share of the optimizer state.
int32_t device_blocks_of(const config::TrainConfig& config, const policy::TrainedBlocks& trained) {
  if (config.device_optimizer_share == "auto") return policy::kAutoShare;
  const double numel = config::parse_share(config.device_optimizer_share) * static_cast<double>(trained.state_numel);
  int64_t held = 0;
  int32_t blocks = 0;
  while (static_cast<double>(held) < numel) held += trained.groups[static_cast<size_t>(blocks++)].state_numel;
  return blocks;
}

plan::OffloadPlan plan_of(const config::TrainConfig& config, const model::Model& model, const LargestStep& step) {
  const policy::TrainedBlocks trained = policy::find_trained_blocks(model, frozen_of(config));
  plan::OffloadRequest request{.block_parameters = {}, .block_state_parameters = {}};
  for (size_t i = 0; i < trained.groups.size(); ++i) {
    request.block_parameters.push_back(model.blocks()[i].numel);
    request.block_state_parameters.push_back(trained.groups[i].state_numel);
  }
  request.accumulate = step.accumulate;
  request.device_blocks = std::max(0, device_blocks_of(config, trained));
  request.shares_gradients = config.overlap == "exact";
  request.tokens = request.trained_tokens = step.tokens;
  request.recompute = config.recompute;
  return plan::choose_offload(model.shape(), request, bytes_or_zero(config.device_budget));
}

policy::OffloadSettings offload_settings(const config::TrainConfig& config, const model::Model& model,
                                         const LargestStep& step, const device::Cores& cores) {
  const plan::OffloadPlan plan = plan_of(config, model, step);
  policy::OffloadSettings settings;
  settings.optimizer = optimizer_of(config);
  settings.recompute = config.recompute;
  settings.is_frozen = frozen_of(config);
  settings.overlap = config.overlap == "none" ? policy::Overlap::kNone : policy::Overlap::kExact;
  settings.clip_scope = config.clip_scope == "block" ? policy::ClipScope::kBlock : policy::ClipScope::kGlobal;
  settings.clip_norm = config.clip_norm == "lagged" ? policy::ClipNorm::kLagged : policy::ClipNorm::kExact;
  settings.device_budget = bytes_or_zero(config.device_budget);
  settings.host_budget = bytes_or_zero(config.host_budget);
  settings.num_device_blocks = device_blocks_of(config, policy::find_trained_blocks(model, settings.is_frozen));
  settings.gradient_slots = plan.gradient_slots;
  settings.order = plan.order;
  settings.host_workers =
      static_cast<int32_t>(config.host_workers > 0 ? config.host_workers : std::max<size_t>(1, cores.host.size()));
  settings.host_bytes_per_s = static_cast<double>(bytes_or_zero(config.emulated_host));
  settings.deadline_s = parse_seconds(config.lane_deadline);
  settings.recorded_steps = config.trace_steps;
  return settings;
}

}  // namespace

void require_device(const config::TrainConfig& config) {
  const device::Kind kind = device::parse(config.device);
  if (kind == device::Kind::kCuda) {
    throw ConfigError("train.device", "--device cuda cannot train yet: use cpu, or emulated to try offloading.");
  }
}

std::unique_ptr<device::Device> open_device(const config::TrainConfig& config) {
  if (device::parse(config.device) == device::Kind::kCpu) {
    set_compute_threads(config.threads);
    return device::make_cpu_device();
  }
  const auto link = static_cast<double>(bytes_or_zero(config.emulated_link));
  auto device = device::make_emulated_device({.to_device = {.bytes_per_s = link}, .to_host = {.bytes_per_s = link}});
  const std::vector<int>& cores = device->cores().compute;
  device::pin_this_thread(cores);
  set_compute_threads(config.threads > 0 ? config.threads : std::max<int64_t>(1, static_cast<int64_t>(cores.size())));
  return device;
}

void check_memory(const config::TrainConfig& config, const model::Model& model, const LargestStep& step,
                  const std::function<void(const std::string&)>& say) {
  const int64_t available = os::memory_facts().available_bytes, host_budget = bytes_or_zero(config.host_budget);
  const auto require_host = [&](const plan::MemoryPlan& plan, int64_t beside, const auto&... hint) {
    plan::require_fits(plan, available - beside, "what this machine has available", hint...);
    if (host_budget > 0) plan::require_fits(plan, host_budget, "--host-budget", hint...);
  };
  if (config.policy == "offload") {
    const plan::OffloadPlan plan = plan_of(config, model, step);
    say("memory: " + plan.text());
    // The emulated device's memory is this machine's too.
    return require_host(
        plan.host, plan.device.total(),
        "Masters, gradients and moments take 16 bytes a parameter there; keep some of them on the device "
        "(--device-optimizer-share) or free memory.");
  }
  plan::MemoryRequest request;
  request.tokens = request.trained_tokens = step.tokens;
  for (const model::BlockSpec& block : model.blocks()) request.parameters += block.numel;
  request.state_parameters = request.parameters;
  request.recompute = config.recompute;
  const plan::MemoryPlan plan = plan::plan_memory(model.shape(), request);
  say("memory: " + plan.text());
  require_host(plan, 0);
  if (!config.device_budget.empty()) plan::require_fits(plan, parse_bytes(config.device_budget), "--device-budget");
}

std::unique_ptr<policy::Policy> make_policy(const config::TrainConfig& config, const model::Model& model,
                                            std::vector<at::Tensor> weights, const LargestStep& step,
                                            std::unique_ptr<device::Device> device) {
  if (config.policy == "resident") {
    policy::Resident::Settings settings{optimizer_of(config), config.recompute, frozen_of(config)};
    return std::make_unique<policy::Resident>(model, std::move(weights), std::move(settings));
  }
  policy::OffloadSettings settings = offload_settings(config, model, step, device->cores());
  return std::make_unique<policy::Offload>(model, std::move(device), weights, std::move(settings));
}

}  // namespace headrace::train
