#include "headrace/plan/policy_choice.h"

#include <algorithm>
#include <cstdio>

#include "headrace/graph/regimes.h"
#include "headrace/plan/zenflow.h"

namespace headrace::plan {
namespace {

double exact_stall(const ChoiceRequest& request, double share) {
  const graph::StepCosts costs{request.forward_s, request.backward_s, request.host_update_s};
  if (request.clips) return graph::stall_with_global_clip(costs, share);
  return graph::stall_in_deadline_order({request.forward_s, request.backward_s, (1 - share) * request.host_update_s});
}

double share_of_step(double stall_s, double compute_s) { return stall_s / (stall_s + compute_s); }

std::string text(const char* format, auto... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

HostWork host_work(const ChoiceRequest& request, double device_share) {
  return {.exact_update_s = (1 - device_share) * request.host_update_s,
          .step_s = request.forward_s + request.backward_s,
          .deferred_share = 1 - request.topk_ratio,
          .has_slots = request.has_slots};
}

// The shortest windows without a device share; else, with the longest, the smallest share with which the host follows.
void choose_zenflow(const ChoiceRequest& request, PolicyChoice& choice) {
  choice.policy = ChosenPolicy::kZenFlow;
  const HostWork work = host_work(request, 0);
  choice.update_interval = shortest_interval(work, request.longest_interval);
  if (choice.update_interval > 0) return;
  choice.update_interval = request.longest_interval;
  const double room_s = static_cast<double>(request.longest_interval) * work.step_s;
  const double work_s = window_work_s(work, request.longest_interval);
  choice.device_share = std::min(request.device_share, 1 - room_s / work_s);
  const double late_s = std::max(0.0, (1 - choice.device_share) * work_s - room_s);
  choice.stall_share = share_of_step(late_s, room_s);
}

std::string chosen(const ChoiceRequest& request, const PolicyChoice& choice) {
  if (choice.policy == ChosenPolicy::kExact) return "exact overlap: no bit of the result changes";
  if (choice.policy == ChosenPolicy::kExactWithShare) {
    return text("exact overlap with %.0f %% of the optimizer state on the device: no bit of the result changes",
                100 * choice.device_share);
  }
  return text(
      "zenflow: k %.3g, S %lld, %.0f %% of the optimizer state on the device, %.1f %% of a step idle: deferred "
      "gradients are seen at most %lld steps late",
      request.topk_ratio, static_cast<long long>(choice.update_interval), 100 * choice.device_share,
      100 * choice.stall_share, static_cast<long long>(2 * choice.update_interval - 1));
}

}  // namespace

PolicyChoice choose_policy(const ChoiceRequest& request) {
  const double compute_s = request.forward_s + request.backward_s;
  PolicyChoice choice;
  choice.stall_share = share_of_step(exact_stall(request, 0), compute_s);
  choice.reasons[0] =
      text("expected: forward %.3g s, backward %.3g s, host update %.3g s, %.3g of the two together", request.forward_s,
           request.backward_s, request.host_update_s, request.host_update_s / compute_s);
  const double needed = graph::device_share_without_stall(
      {request.clips ? request.forward_s : compute_s, request.backward_s, request.host_update_s});
  choice.reasons[1] = text(
      "exact overlap would idle %.1f %% of a step; %.0f %% of the optimizer state on the device "
      "would end that, there is room for %.0f %%",
      100 * choice.stall_share, 100 * needed, 100 * request.device_share);
  if (choice.stall_share < kSmallStall) {
    choice.policy = ChosenPolicy::kExact;
  } else if (share_of_step(exact_stall(request, request.device_share), compute_s) < kSmallStall) {
    choice.policy = ChosenPolicy::kExactWithShare;
    choice.device_share = std::min(needed, request.device_share);
    choice.stall_share = share_of_step(exact_stall(request, choice.device_share), compute_s);
  } else {
    choice.stall_share = 0;
    choose_zenflow(request, choice);
  }
  choice.reasons[2] = chosen(request, choice);
  return choice;
}

}  // namespace headrace::plan
