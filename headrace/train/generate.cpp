#include "headrace/train/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"

namespace headrace::train {
namespace {

// Ids from the likeliest down, cut by top_k and top_p, with their unnormalised probabilities.
struct Candidates {
  std::vector<int64_t> ids;
  std::vector<double> weights;
};

Candidates candidates_of(std::span<const float> logits, const SamplingConfig& config) {
  Candidates result;
  result.ids.resize(logits.size());
  std::iota(result.ids.begin(), result.ids.end(), int64_t{0});
  std::stable_sort(result.ids.begin(), result.ids.end(), [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (config.top_k > 0) result.ids.resize(std::min(result.ids.size(), static_cast<size_t>(config.top_k)));
  const double highest = logits[static_cast<size_t>(result.ids.front())];
  for (int64_t id : result.ids) {
    result.weights.push_back(std::exp((logits[static_cast<size_t>(id)] - highest) / config.temperature));
  }
  const double wanted = config.top_p * std::accumulate(result.weights.begin(), result.weights.end(), 0.0);
  double sum = 0;
  size_t kept = 0;
  while (kept < result.weights.size() && (kept == 0 || sum < wanted)) sum += result.weights[kept++];
  result.ids.resize(kept);
  result.weights.resize(kept);
  return result;
}

}  // namespace

void validate(const SamplingConfig& config) {
  const auto refuse = [](const char* key, double value, const char* range) {
    throw ConfigError("train.generate", std::string(key) + " is " + Json(value).dump() + ", expected " + range + ".");
  };
  if (!(config.temperature >= 0) || !std::isfinite(config.temperature)) {
    refuse("temperature", config.temperature, "at least 0");
  }
  if (config.top_k < 0) refuse("top_k", static_cast<double>(config.top_k), "at least 0");
  if (!(config.top_p > 0 && config.top_p <= 1)) refuse("top_p", config.top_p, "above 0 and at most 1");
}

int64_t sample(const at::Tensor& logits, const SamplingConfig& config, Rng& rng) {
  const std::span<const float> values(logits.const_data_ptr<float>(), static_cast<size_t>(logits.numel()));
  if (config.temperature == 0) return std::max_element(values.begin(), values.end()) - values.begin();
  const Candidates candidates = candidates_of(values, config);
  double point = rng.uniform() * std::accumulate(candidates.weights.begin(), candidates.weights.end(), 0.0);
  for (size_t i = 0; i + 1 < candidates.ids.size(); ++i) {
    point -= candidates.weights[i];
    if (point < 0) return candidates.ids[i];
  }
  return candidates.ids.back();
}

std::vector<int64_t> generate(const model::Model& model, std::span<const model::BlockBuffers> blocks,
                              std::span<const int64_t> prompt, const GenerationConfig& config,
                              const std::function<bool(int64_t id)>& on_token) {
  validate(config.sampling);
  if (prompt.empty()) throw ConfigError("train.generate", "the prompt is empty: give at least one token.");
  if (config.max_new_tokens < 1) {
    throw ConfigError("train.generate",
                      "max_new_tokens is " + std::to_string(config.max_new_tokens) + ", expected at least 1.");
  }
  Rng rng(config.seed);
  model::Decoder decoder(model, blocks, static_cast<int64_t>(prompt.size()) + config.max_new_tokens);
  at::Tensor logits = decoder.append(prompt);
  std::vector<int64_t> result;
  while (static_cast<int64_t>(result.size()) < config.max_new_tokens) {
    const int64_t id = sample(logits, config.sampling, rng);
    if (std::find(config.stop_ids.begin(), config.stop_ids.end(), id) != config.stop_ids.end()) break;
    result.push_back(id);
    if (on_token && !on_token(id)) break;
    if (static_cast<int64_t>(result.size()) < config.max_new_tokens) logits = decoder.append({&id, 1});
  }
  return result;
}

}  // namespace headrace::train
