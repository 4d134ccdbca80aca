#include "headrace/plan/memory.h"

#include <algorithm>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"

namespace headrace::plan {
namespace {

constexpr int64_t kFloat = 4;              // [bytes]
constexpr int64_t kLossChunk = 128 << 20;  // [bytes] of logits that exist at a time (model/linear_cross_entropy)

// [floats a token] that one layer keeps for its backward (model/layer.h): its input and the stream between attention
// and feed-forward, query, key and value, the attention's output, and what goes into the activation.
int64_t kept_by_layer(const config::ModelShape& shape) {
  const int64_t query = shape.num_heads * shape.head_dim, key = shape.num_kv_heads * shape.head_dim;
  const bool is_gated = shape.activation == config::Activation::kSilu;
  return 2 * shape.hidden_size + (query + 2 * key) + query + (is_gated ? 2 : 1) * shape.intermediate_size +
         (shape.has_qk_norm ? query + key : 0);
}

// [bytes] of scores that exist at a time (tensor/aten_attention): those of some key heads of one document.
int64_t score_bytes(const config::ModelShape& shape, int64_t tokens) {
  constexpr int64_t kTensors = 5, kMost = 256 << 20;
  if (tokens == 0) return 0;
  const int64_t one_key = kFloat * shape.num_heads / shape.num_kv_heads * tokens * tokens;
  return kTensors * std::max(one_key, std::min(kMost, one_key * shape.num_kv_heads));
}

}  // namespace

MemoryPlan plan_memory(const config::ModelShape& shape, const MemoryRequest& request) {
  MemoryPlan plan;
  plan.weights = kFloat * request.parameters;
  const int64_t layer = kFloat * request.tokens * kept_by_layer(shape);
  const int64_t hidden = kFloat * request.tokens * shape.hidden_size;
  const int64_t logits = std::min(kLossChunk, kFloat * request.trained_tokens * shape.vocab_size);
  plan.workspace = 2 * layer + logits + score_bytes(shape, request.scored_tokens);
  if (!request.trains) return plan;
  plan.gradients = kFloat * request.parameters;
  plan.moments = 2 * kFloat * request.state_parameters;
  plan.activations = request.recompute ? (shape.num_layers + 1) * hidden : shape.num_layers * layer;
  return plan;
}

Json MemoryPlan::to_json() const {
  return {{"weights", weights},         {"gradients", gradients}, {"moments", moments},
          {"activations", activations}, {"workspace", workspace}, {"total", total()}};
}

std::string MemoryPlan::text() const {
  return "weights " + format_bytes(weights) + " + gradients " + format_bytes(gradients) + " + moments " +
         format_bytes(moments) + " + activations " + format_bytes(activations) + " + workspace " +
         format_bytes(workspace) + " = " + format_bytes(total());
}

void require_fits(const MemoryPlan& plan, int64_t available, const std::string& what, const std::string& hint) {
  if (plan.total() <= available) return;
  throw CapacityError("plan.memory", "the run needs " + format_bytes(plan.total()) + " of host memory (" + plan.text() +
                                         ") but " + what + " is " + format_bytes(available) + ". " + hint);
}

}  // namespace headrace::plan
