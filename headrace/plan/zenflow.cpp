#include "headrace/plan/zenflow.h"

#include <algorithm>
#include <numeric>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"

namespace headrace::plan {
namespace {

constexpr int64_t kFloat = 4;   // [bytes]
constexpr int64_t kStates = 3;  // master, m, v

// [elements] of gradient buffers on the device. The tied embedding's gradient is under way for the whole backward.
int64_t gradient_numel(const config::ModelShape& shape, const ZenflowRequest& request, bool shares_gradient) {
  const std::vector<int64_t>& blocks = request.block_parameters;
  if (!shares_gradient) return std::accumulate(blocks.begin(), blocks.end(), int64_t{0});
  const auto first_shared = blocks.begin() + (shape.is_tied ? 1 : 0);
  const int64_t shared = first_shared == blocks.end() ? 0 : *std::max_element(first_shared, blocks.end());
  return shared + (shape.is_tied ? blocks.front() : 0);
}

std::string refusal(const std::string& tier, const MemoryPlan& plan, int64_t budget, const std::string& knob,
                    const std::string& hint) {
  return "the " + tier + " needs " + format_bytes(plan.total()) + " (" + std::to_string(plan.total()) +
         " bytes): " + plan.text() + ", but " + knob + " is " + format_bytes(budget) + ". " + hint;
}

}  // namespace

ZenflowPlan plan_zenflow(const config::ModelShape& shape, const ZenflowRequest& request, bool shares_gradient,
                         bool has_slots) {
  ZenflowPlan plan{.shares_gradient = shares_gradient, .has_slots = has_slots, .device = {}, .host = {}};
  const int64_t numel = std::accumulate(request.block_parameters.begin(), request.block_parameters.end(), int64_t{0});
  plan.device = plan_memory(shape, {.parameters = numel,
                                    .state_parameters = 0,
                                    .tokens = request.tokens,
                                    .trained_tokens = request.trained_tokens,
                                    .recompute = request.recompute,
                                    .scored_tokens = request.scored_tokens});
  plan.device.gradients = kFloat * (gradient_numel(shape, request, shares_gradient) + request.important);
  plan.device.moments = 2 * kFloat * request.important;
  plan.device.workspace += kFloat * request.num_ring_buffers * request.ring_buffer;
  if (shares_gradient && request.accumulate > 1) {
    plan.order = graph::ComputeOrder::kLayerMajor;
    plan.device.activations *= request.accumulate;
  }
  plan.host.weights = kFloat * request.deferred;
  plan.host.moments = 2 * kFloat * request.deferred;
  plan.host.gradients = kFloat * request.deferred * (has_slots ? 2 * request.longest_interval : 3);
  plan.host.workspace = 2 * kStates * kFloat * request.exchange;
  return plan;
}

ZenflowPlan choose_zenflow(const config::ModelShape& shape, const ZenflowRequest& request, int64_t device_budget,
                           int64_t host_budget) {
  const auto fits = [](const MemoryPlan& plan, int64_t budget) { return budget == 0 || plan.total() <= budget; };
  ZenflowPlan plan = plan_zenflow(shape, request, false, true);
  if (!fits(plan.host, host_budget)) plan = plan_zenflow(shape, request, false, false);
  if (!fits(plan.device, device_budget)) plan = plan_zenflow(shape, request, true, plan.has_slots);
  if (!fits(plan.device, device_budget)) {
    throw CapacityError("plan.zenflow", refusal("device", plan.device, device_budget, "--device-budget",
                                                "Raise it, lower --topk-ratio, --batch or --max-length, or add "
                                                "--recompute; weights and important columns stay on the device."));
  }
  if (!fits(plan.host, host_budget)) {
    throw CapacityError("plan.zenflow", refusal("host", plan.host, host_budget, "--host-budget",
                                                "Raise it, or --topk-ratio, which keeps more on the device."));
  }
  return plan;
}

std::string ZenflowPlan::text() const {
  return "device: " + device.text() + "; host: masters " + format_bytes(host.weights) + " + windows " +
         format_bytes(host.gradients) + (has_slots ? " in slots" : " as running sums") + " + moments " +
         format_bytes(host.moments) + " + exchange " + format_bytes(host.workspace) + " = " +
         format_bytes(host.total());
}

double window_work_s(const HostWork& work, int64_t interval) {
  constexpr double kState = 24, kGradient = 4, kExact = kState + kGradient;
  const auto steps = static_cast<double>(interval);
  const double bytes = work.has_slots ? kState + kGradient * steps : kExact + 12 * steps - 4;
  return work.deferred_share * bytes / kExact * work.exact_update_s;
}

int64_t shortest_interval(const HostWork& work, int64_t longest) {
  for (int64_t steps = 1; steps <= longest; ++steps) {
    if (window_work_s(work, steps) <= static_cast<double>(steps) * work.step_s) return steps;
  }
  return 0;
}

}  // namespace headrace::plan
