#include "headrace/policy/non_finite.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "headrace/model/run.h"

namespace headrace::policy {
namespace {

// "element 17: nan" of the first offender.
std::optional<std::string> first_non_finite(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const float* values = flat.data_ptr<float>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (!std::isfinite(values[i])) return "element " + std::to_string(i) + ": " + std::to_string(values[i]);
  }
  return std::nullopt;
}

std::optional<std::string> in_parameters(const model::BlockSpec& spec, const at::Tensor& flat, const char* what) {
  if (!flat.defined()) return std::nullopt;
  for (const model::ParameterSpec& parameter : spec.parameters) {
    const auto found = first_non_finite(flat.slice(0, parameter.offset, parameter.offset + parameter.numel));
    if (found) return "block " + spec.name + ", " + what + " " + parameter.name + ", " + *found;
  }
  return std::nullopt;
}

std::optional<std::string> in_outputs(const model::Model& model, std::span<const model::BlockBuffers> blocks,
                                      const model::Batch& batch) {
  at::Tensor x;
  for (int64_t i = 0; i < model.head_index(); ++i) {
    x = model::forward_block(model, i, blocks[static_cast<size_t>(i)], x, batch, model::Keep::kNothing).output_NC;
    if (const auto found = first_non_finite(x)) {
      return "block " + model.blocks()[static_cast<size_t>(i)].name + ", output, " + *found;
    }
  }
  if (!std::isfinite(model::loss(model, blocks.back(), blocks.front(), x, batch).loss_sum)) {
    return "block " + model.blocks().back().name + ", loss";
  }
  return std::nullopt;
}

}  // namespace

std::string locate_non_finite(const model::Model& model, std::span<const model::BlockBuffers> blocks,
                              std::span<const model::Batch> micro_batches) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (const auto found = in_parameters(model.blocks()[i], blocks[i].weights, "weight")) return *found;
  }
  for (const model::Batch& batch : micro_batches) {
    const model::Batch on_device = model::to_device(batch, blocks.front().weights.device());
    if (const auto found = in_outputs(model, blocks, on_device)) return *found;
  }
  for (size_t i = blocks.size(); i-- > 0;) {
    if (const auto found = in_parameters(model.blocks()[i], blocks[i].gradients, "gradient")) return *found;
  }
  return "no single element: a sum overflowed";
}

double norm_of_parts(std::span<const double> squared_norms) {
  double squared = 0;
  for (const double part : squared_norms) squared += part;
  return std::sqrt(squared);
}

bool is_finite(double loss_sum, std::span<const double> squared_norms) {
  return std::isfinite(loss_sum) && std::isfinite(norm_of_parts(squared_norms));
}

std::string skipped_text(const model::Model& model, double loss, std::span<const double> squared_norms) {
  std::string text = "loss " + std::to_string(loss);
  const auto is_bad = [](double squared) { return !std::isfinite(squared); };
  const auto last = std::find_if(squared_norms.rbegin(), squared_norms.rend(), is_bad);
  if (last == squared_norms.rend()) {
    return text + "; gradient norm " + std::to_string(norm_of_parts(squared_norms));
  }
  const auto block = static_cast<size_t>(squared_norms.rend() - last - 1);
  return text + "; gradients of " + std::to_string(std::count_if(squared_norms.begin(), squared_norms.end(), is_bad)) +
         " of " + std::to_string(squared_norms.size()) + " blocks, in backward first " + model.blocks()[block].name;
}

RunError non_finite_error(const model::Model& model, std::vector<model::BlockBuffers> blocks,
                          std::span<const double> squared_norms, std::span<const model::Batch> micro_batches,
                          const StepNumbers& numbers, bool is_untouched) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (std::isfinite(squared_norms[i])) blocks[i].gradients.reset();
  }
  return RunError("policy.step",
                  non_finite_text(numbers, locate_non_finite(model, blocks, micro_batches), is_untouched));
}

std::string non_finite_text(const StepNumbers& numbers, const std::string& place, bool is_untouched) {
  return "step " + std::to_string(numbers.step + 1) + ": loss " + std::to_string(numbers.loss) + " and gradient norm " +
         std::to_string(numbers.gradient_norm) + " are not both finite; first at " + place +
         (is_untouched ? ". Nothing was updated." : ". Blocks that needed no norm may be updated already.") +
         " Lower --lr, clip (--clip 1) or look at that step's data.";
}

}  // namespace headrace::policy
