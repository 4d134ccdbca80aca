#include "headrace/train/make_policy.h"

#include <algorithm>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/pattern.h"
#include "headrace/base/units.h"
#include "headrace/device/cpu.h"
#include "headrace/device/cuda.h"
#include "headrace/device/emulated.h"
#include "headrace/os/affinity.h"
#include "headrace/os/memory_facts.h"
#include "headrace/plan/memory.h"
#include "headrace/plan/offload.h"
#include "headrace/plan/zenflow.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/resident.h"
#include "headrace/policy/trained_blocks.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "headrace/tensor/gpu_memory.h"
#include "headrace/train/load.h"

namespace headrace::train {
namespace {

constexpr int64_t kGpuCode = 512 << 20;  // [bytes] what libraries load onto a GPU as they are first used, about

int64_t bytes_or_zero(const std::string& text) { return text.empty() ? 0 : parse_bytes(text); }

policy::OptimizerSettings optimizer_of(const config::TrainConfig& config) {
  return {config.beta1, config.beta2, config.epsilon, config.weight_decay, config.clip, config.on_nan == "skip"};
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

plan::OffloadPlan plan_of(const config::TrainConfig& config, const model::Model& model, const LargestStep& step,
                          const policy::TrainedBlocks& trained, int32_t device_blocks) {
  plan::OffloadRequest request{.block_parameters = {}, .block_state_parameters = {}};
  for (size_t i = 0; i < trained.groups.size(); ++i) {
    request.block_parameters.push_back(model.blocks()[i].numel);
    request.block_state_parameters.push_back(trained.groups[i].state_numel);
  }
  request.accumulate = step.accumulate;
  request.device_blocks = device_blocks;
  request.shares_gradients = config.overlap == "exact";
  request.tokens = request.trained_tokens = step.tokens;
  request.recompute = config.recompute;
  request.scored_tokens = step.scored_tokens;
  return plan::choose_offload(model.shape(), request, bytes_or_zero(config.device_budget));
}

plan::OffloadPlan plan_of(const config::TrainConfig& config, const model::Model& model, const LargestStep& step) {
  const policy::TrainedBlocks trained = policy::find_trained_blocks(model, frozen_of(config));
  return plan_of(config, model, step, trained, std::max(0, device_blocks_of(config, trained)));
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

// [bytes] that the host may take: the budget's, else what this machine has.
int64_t host_room(const config::TrainConfig& config) {
  const int64_t available = os::memory_facts().available_bytes, budget = bytes_or_zero(config.host_budget);
  return budget > 0 ? std::min(budget, available) : available;
}

int64_t longest_interval(const config::TrainConfig& config) {
  const int64_t interval = config::parse_update_interval(config.update_interval);
  return interval > 0 ? interval : config.max_update_interval;
}

policy::ZenFlowSettings zenflow_settings(const config::TrainConfig& config, const policy::TrainedBlocks& trained,
                                         size_t host_cores) {
  policy::ZenFlowSettings settings;
  settings.optimizer = optimizer_of(config);
  settings.recompute = config.recompute;
  settings.is_frozen = frozen_of(config);
  settings.topk_ratio = config.topk_ratio;
  const int64_t interval = config::parse_update_interval(config.update_interval);
  settings.auto_interval = interval == 0;
  settings.limits = {.smallest = 1, .largest = config.max_update_interval};
  settings.schedule = {.update_interval = interval > 0 ? interval : std::min<int64_t>(4, config.max_update_interval),
                       .warmup_steps = config.warmup_steps,
                       .select_interval = config.select_interval,
                       .overlaps = config.overlap == "exact"};
  if (config.deferred_lr == "sqrt") settings.deferred_rate = policy::DeferredRate::kSqrt;
  if (config.deferred_lr == "linear") settings.deferred_rate = policy::DeferredRate::kLinear;
  settings.device_budget = bytes_or_zero(config.device_budget);
  settings.host_budget = bytes_or_zero(config.host_budget);
  settings.num_device_blocks = device_blocks_of(config, trained);
  settings.host_workers =
      static_cast<int32_t>(config.host_workers > 0 ? config.host_workers : std::max<size_t>(1, host_cores));
  settings.host_bytes_per_s = static_cast<double>(bytes_or_zero(config.emulated_host));
  settings.deadline_s = parse_seconds(config.lane_deadline);
  settings.recorded_steps = config.trace_steps;
  return settings;
}

plan::ZenflowRequest zenflow_request(const config::TrainConfig& config, const model::Model& model,
                                     const LargestStep& step) {
  const policy::TrainedBlocks trained = policy::find_trained_blocks(model, frozen_of(config));
  const policy::ZenFlow::Sizes sizes = policy::ZenFlow::sizes_of(model, zenflow_settings(config, trained, 1));
  plan::ZenflowRequest request;
  for (const model::BlockSpec& block : model.blocks()) request.block_parameters.push_back(block.numel);
  request.important = sizes.important;
  request.deferred = sizes.deferred;
  request.ring_buffer = sizes.ring_buffer;
  request.num_ring_buffers = sizes.num_ring_buffers;
  request.exchange = sizes.exchange;
  request.longest_interval = longest_interval(config);
  request.accumulate = step.accumulate;
  request.tokens = request.trained_tokens = step.tokens;
  request.recompute = config.recompute;
  request.scored_tokens = step.scored_tokens;
  return request;
}

// Slots where they are asked for or fit.
plan::ZenflowPlan zenflow_plan_of(const config::TrainConfig& config, const model::Model& model,
                                  const LargestStep& step) {
  const plan::ZenflowRequest request = zenflow_request(config, model, step);
  const int64_t device = bytes_or_zero(config.device_budget), host = bytes_or_zero(config.host_budget);
  const plan::ZenflowPlan plan =
      plan::choose_zenflow(model.shape(), request, device, config.window_sum == "auto" ? host_room(config) : host);
  if (config.window_sum == "auto") return plan;
  return plan::plan_zenflow(model.shape(), request, plan.shares_gradient, config.window_sum == "slots");
}

plan::MemoryPlan resident_plan(const config::TrainConfig& config, const model::Model& model, const LargestStep& step) {
  plan::MemoryRequest request;
  request.tokens = request.trained_tokens = step.tokens;
  for (const model::BlockSpec& block : model.blocks()) request.parameters += block.numel;
  request.state_parameters = request.parameters;
  request.recompute = config.recompute;
  request.scored_tokens = step.scored_tokens;
  return plan::plan_memory(model.shape(), request);
}

}  // namespace

void require_device(const config::TrainConfig& config) {
  if (device::parse(config.device) != device::Kind::kCuda || device::cuda::num_devices() > 0) return;
  throw ConfigError("train.device", "there is no GPU here. Use --device cpu, or emulated to try offloading.");
}

std::unique_ptr<device::Device> open_device(const config::TrainConfig& config) {
  if (device::parse(config.device) == device::Kind::kCpu) {
    set_compute_threads(config.threads);
    return device::make_cpu_device();
  }
  if (device::parse(config.device) == device::Kind::kCuda) {
    set_compute_threads(config.threads);
    const int64_t budget = bytes_or_zero(config.device_budget);
    auto device = device::cuda::make_device({.budget_bytes = budget});
    if (budget > 0) tensor::limit_gpu_memory(budget);  // policies with slabs of their own lower it
    return device;
  }
  const auto link = static_cast<double>(bytes_or_zero(config.emulated_link));
  auto device = device::make_emulated_device({.to_device = {.bytes_per_s = link}, .to_host = {.bytes_per_s = link}});
  const std::vector<int>& cores = device->cores().compute;
  os::pin_this_thread(cores);
  set_compute_threads(config.threads > 0 ? config.threads : std::max<int64_t>(1, static_cast<int64_t>(cores.size())));
  return device;
}

std::string device_budget_of(const config::TrainConfig& config) {
  if (device::parse(config.device) != device::Kind::kCuda || !config.device_budget.empty()) return config.device_budget;
  const int64_t free_bytes = device::cuda::facts(0).free_bytes;
  return std::to_string(std::max<int64_t>(1, free_bytes - free_bytes / 20 - kGpuCode)) + "B";
}

void check_memory(const config::TrainConfig& config, const model::Model& model, const LargestStep& step,
                  const std::function<void(const std::string&)>& say) {
  const int64_t available = os::memory_facts().available_bytes, host_budget = bytes_or_zero(config.host_budget);
  const bool has_own_memory = device::parse(config.device) == device::Kind::kCuda;
  const auto require_host = [&](const plan::MemoryPlan& plan, int64_t beside, const auto&... hint) {
    plan::require_fits(plan, available - beside, "what this machine has available", hint...);
    if (host_budget > 0) plan::require_fits(plan, host_budget, "--host-budget", hint...);
  };
  if (config.policy == "offload") {
    const plan::OffloadPlan plan = plan_of(config, model, step);
    say("memory: " + plan.text());
    // The emulated device's memory is this machine's too.
    return require_host(
        plan.host, has_own_memory ? 0 : plan.device.total(),
        "Masters, gradients and moments take 16 bytes a parameter there; keep some of them on the device "
        "(--device-optimizer-share) or free memory.");
  }
  if (config.policy == "zenflow") {
    const plan::ZenflowPlan plan = zenflow_plan_of(config, model, step);
    say("memory: " + plan.text());
    return require_host(plan.host, has_own_memory ? 0 : plan.device.total(),
                        "Add each gradient to a sum as it comes (--window-sum running), lower --max-update-interval or "
                        "raise --topk-ratio.");
  }
  const plan::MemoryPlan plan = resident_plan(config, model, step);
  say("memory: " + plan.text());
  require_host(has_own_memory ? plan::MemoryPlan{.weights = plan.weights} : plan, 0);
  if (!config.device_budget.empty()) plan::require_fits(plan, parse_bytes(config.device_budget), "--device-budget");
}

bool fits_device(const config::TrainConfig& config, const model::Model& model, const LargestStep& step) {
  return resident_plan(config, model, step).total() <= bytes_or_zero(config.device_budget);
}

double spare_device_share(const config::TrainConfig& config, const model::Model& model, const LargestStep& step) {
  const int64_t budget = bytes_or_zero(config.device_budget);
  const policy::TrainedBlocks trained = policy::find_trained_blocks(model, frozen_of(config));
  const plan::OffloadPlan plan = plan_of(config, model, step, trained, /*device_blocks=*/0);
  if (budget == 0) return 1;
  // A block on the device has both moments there, and a gradient buffer of its own.
  const double bytes = 12.0 * static_cast<double>(trained.state_numel);
  return std::clamp(static_cast<double>(budget - plan.device.total()) / bytes, 0.0, 1.0);
}

bool has_room_for_slots(const config::TrainConfig& config, const model::Model& model, const LargestStep& step) {
  if (config.window_sum != "auto") return config.window_sum == "slots";
  const plan::ZenflowRequest request = zenflow_request(config, model, step);
  return plan::plan_zenflow(model.shape(), request, true, true).host.total() <= host_room(config);
}

std::unique_ptr<policy::Policy> make_policy(const config::TrainConfig& config, const model::Model& model,
                                            std::vector<at::Tensor> weights, const LargestStep& step,
                                            std::unique_ptr<device::Device> device) {
  if (config.policy == "resident") {
    policy::Resident::Settings settings{optimizer_of(config), config.recompute, frozen_of(config)};
    return std::make_unique<policy::Resident>(model, std::move(weights), std::move(settings), std::move(device));
  }
  if (config.policy == "zenflow") {
    const plan::ZenflowPlan plan = zenflow_plan_of(config, model, step);
    policy::ZenFlowSettings settings =
        zenflow_settings(config, policy::find_trained_blocks(model, frozen_of(config)), device->cores().host.size());
    settings.shares_gradient = plan.shares_gradient;
    settings.order = plan.order;
    settings.window_sum = plan.has_slots ? policy::zenflow::WindowSum::kSlots : policy::zenflow::WindowSum::kRunning;
    return std::make_unique<policy::ZenFlow>(model, std::move(device), weights, std::move(settings));
  }
  policy::OffloadSettings settings = offload_settings(config, model, step, device->cores());
  return std::make_unique<policy::Offload>(model, std::move(device), weights, std::move(settings));
}

}  // namespace headrace::train
