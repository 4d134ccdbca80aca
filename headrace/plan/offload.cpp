#include "headrace/plan/offload.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"

namespace headrace::plan {
namespace {

constexpr int64_t kFloat = 4;  // [bytes]

int64_t sum(const std::vector<int64_t>& values) { return std::accumulate(values.begin(), values.end(), int64_t{0}); }

graph::StepShape step_shape(const config::ModelShape& shape, const OffloadRequest& request, int32_t gradient_slots,
                            graph::ComputeOrder order) {
  graph::StepShape step;
  step.blocks.resize(request.block_parameters.size());
  step.accumulate = request.accumulate;
  step.order = order;
  step.is_tied = shape.is_tied;
  step.gradient_slots = request.shares_gradients ? gradient_slots : 0;
  return step;
}

// [bytes] of all gradient buffers on the device.
int64_t gradient_bytes(const graph::StepShape& step, const OffloadRequest& request) {
  std::vector<int64_t> slots(static_cast<size_t>(step.gradient_slots), 0);
  int64_t numel = 0;
  for (int32_t i = 0; i < step.num_blocks(); ++i) {
    const int64_t block = request.block_parameters[static_cast<size_t>(i)];
    const int32_t slot = step.gradient_slot(i, request.device_blocks);
    if (slot == graph::kOwnBuffer) {
      numel += block;
    } else {
      int64_t& size = slots[static_cast<size_t>(slot)];
      size = std::max(size, block);
    }
  }
  return kFloat * (numel + sum(slots));
}

}  // namespace

OffloadPlan plan_offload(const config::ModelShape& shape, const OffloadRequest& request, int32_t gradient_slots,
                         graph::ComputeOrder order) {
  OffloadPlan plan{.gradient_slots = gradient_slots, .order = order, .device = {}, .host = {}};
  plan.device = plan_memory(shape, {.parameters = sum(request.block_parameters),
                                    .state_parameters = 0,
                                    .tokens = request.tokens,
                                    .trained_tokens = request.trained_tokens,
                                    .recompute = request.recompute,
                                    .scored_tokens = request.scored_tokens});
  plan.device.gradients = gradient_bytes(step_shape(shape, request, gradient_slots, order), request);
  if (order == graph::ComputeOrder::kLayerMajor) plan.device.activations *= request.accumulate;
  for (size_t i = 0; i < request.block_parameters.size(); ++i) {
    const int64_t parameters = kFloat * request.block_parameters[i];
    const int64_t moments = 2 * kFloat * request.block_state_parameters[i];
    if (static_cast<int32_t>(i) < request.device_blocks) {
      plan.device.moments += moments;
    } else {
      plan.host.weights += parameters;
      plan.host.gradients += parameters;
      plan.host.moments += moments;
    }
  }
  return plan;
}

OffloadPlan choose_offload(const config::ModelShape& shape, const OffloadRequest& request, int64_t device_budget) {
  using graph::ComputeOrder;
  std::vector<std::pair<int32_t, ComputeOrder>> choices = {{0, ComputeOrder::kMicroBatchMajor}};
  if (request.shares_gradients) {
    const ComputeOrder order = request.accumulate == 1 ? ComputeOrder::kMicroBatchMajor : ComputeOrder::kLayerMajor;
    for (const int32_t slots : {4, 2, 1}) choices.emplace_back(slots, order);
  }
  OffloadPlan smallest;
  for (const auto& [slots, order] : choices) {
    const OffloadPlan plan = plan_offload(shape, request, slots, order);
    if (device_budget == 0 || plan.device.total() <= device_budget) return plan;
    if (smallest.device.total() == 0 || plan.device.total() < smallest.device.total()) smallest = plan;
  }
  throw CapacityError("plan.offload", "the device needs " + format_bytes(smallest.device.total()) + " (" +
                                          std::to_string(smallest.device.total()) +
                                          " bytes): " + smallest.device.text() + ", but --device-budget is " +
                                          format_bytes(device_budget) +
                                          ". Raise it, lower --batch or --max-length, or add --recompute; weights, the "
                                          "largest gradients and one step's activations stay on the device.");
}

std::string OffloadPlan::text() const {
  return "device: " + device.text() + "; host: masters " + format_bytes(host.weights) + " + gradients " +
         format_bytes(host.gradients) + " + moments " + format_bytes(host.moments) + " = " + format_bytes(host.total());
}

OrderedJson OffloadPlan::to_json() const {
  return {{"device", device.to_json()},
          {"host", host.to_json()},
          {"gradient_slots", gradient_slots},
          {"order", order == graph::ComputeOrder::kLayerMajor ? "layer" : "micro_batch"}};
}

}  // namespace headrace::plan
